"""NVIDIA's MPS: several programs compute on one GPU at the same time, and MPS limits each to its share.

The MPS daemon outlives the server, as jobs do; the next server uses the same daemon. It serves the programs of one
account at a time, so it is for installations whose jobs all have the same account. The operator must know that, and the
setting is off by default.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping

logger = logging.getLogger(__name__)

PROGRAM = "nvidia-cuda-mps-control"
_START_SECONDS = 20.0
#: The daemon writes its process id there while it runs.
_PID_FILE = "nvidia-cuda-mps-control.pid"


def start_mps(directory: str, environ: Mapping[str, str]) -> str:
    """The directory in which programs reach the daemon, or "" if it cannot be started: then shares are not enforced."""
    program = shutil.which(PROGRAM, path=environ.get("PATH"))
    if program is None:
        logger.warning("local.mps has no effect: there is no %s on this machine", PROGRAM)
        return ""
    pipe, log = os.path.join(directory, "pipe"), os.path.join(directory, "log")
    for path, mode in ((directory, 0o711), (pipe, 0o755), (log, 0o700)):
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
    if _is_running(pipe):
        return pipe
    env = {**environ, "CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": log}
    try:
        subprocess.run([program, "-d"], env=env, check=True, capture_output=True, timeout=_START_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("local.mps has no effect: %s does not start: %s", PROGRAM, error)
        return ""
    return pipe


def _is_running(pipe: str) -> bool:
    try:
        with open(os.path.join(pipe, _PID_FILE), encoding="ascii") as source:
            os.kill(int(source.read()), 0)
    except (OSError, ValueError):
        return False
    return True
