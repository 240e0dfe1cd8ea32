"""NVIDIA's MPS: several programs compute on one GPU at the same time, and MPS limits each to its share.

Each account has a daemon of its own, which runs as the account. One daemon would serve one account at a time, so that
jobs of others wait; and a program with a fault on the GPU (an invalid address) ends all programs of its daemon, so that
one user's fault ends no other user's jobs. The daemons outlive the server, as jobs do; the next server uses them again.

Without its daemon a program gets the whole GPU and no error. So a daemon is asked for an answer before each launch, and
started again if there is none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from corral.engines.attempts.accounts import Account, own_account

logger = logging.getLogger(__name__)

PROGRAM = "nvidia-cuda-mps-control"
_START_SECONDS = 20.0
_ANSWER_SECONDS = 5.0
#: An account whose daemon does not answer in time, or fails so late, is not asked again for so long: every launch waits
#: for the answer.
AGAIN_SECONDS = 300.0
_LATE_SECONDS = 2.0
#: An answer is a number. What answers belongs to the account, and may be anything.
_MOST_ANSWER_BYTES = 4096
#: A question that each daemon answers with a number, and that starts nothing.
_QUESTION = b"get_default_active_thread_percentage\n"
_PREPARE = 'umask 077 && mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY" && exec "$0" -d'


class Mps:
    """The daemons of this machine. Safe for use by several threads."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self._directory = directory
        self._path = environ.get("PATH", os.defpath)
        self._program = shutil.which(PROGRAM, path=self._path)
        self._lock = threading.Lock()
        #: when accounts whose daemons hang are asked again
        self._again_at: dict[int, float] = {}
        if self._program is None:
            logger.warning("local.mps has no effect: there is no %s on this machine", PROGRAM)

    def pipe_of(self, account: Account | None) -> str:
        """The directory in which programs of the account reach their daemon, which runs then. "" if there is none: then
        their shares are not enforced."""
        if self._program is None:
            return ""
        account = account or own_account()
        # One directory for each account: what is in it belongs to the account, and only the account looks at it.
        place = os.path.join(self._directory, str(account.uid))
        pipe = os.path.join(place, "pipe")
        with self._lock:
            begun_at = time.monotonic()
            if begun_at < self._again_at.get(account.uid, 0.0):
                return ""
            try:
                self._make(place, account)
                if not self._answers(pipe, account):
                    self._start(pipe, account)
                    if not self._answers(pipe, account):
                        raise OSError(f"{PROGRAM} does not answer")
            except (OSError, subprocess.SubprocessError) as error:
                is_late = time.monotonic() - begun_at >= _LATE_SECONDS
                if is_late or isinstance(error, subprocess.TimeoutExpired):
                    self._again_at[account.uid] = time.monotonic() + AGAIN_SECONDS
                logger.warning("shares of %s are not enforced: %s does not start: %s", account.name, PROGRAM, error)
                return ""
        return pipe

    def _make(self, place: str, account: Account) -> None:
        os.makedirs(self._directory, exist_ok=True)
        os.chmod(self._directory, 0o711)
        try:
            os.mkdir(place, 0o700)
        except FileExistsError:
            return
        if account.uid != os.geteuid():
            os.chown(place, account.uid, account.gid, follow_symlinks=False)

    def _answers(self, pipe: str, account: Account) -> bool:
        """Judged by the answer: some versions end with code 0 without a daemon, too."""
        assert self._program is not None
        command = [self._program]
        with self._begun(command, pipe, account, subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(_QUESTION)
                    process.stdin.close()
                answer = _first_bytes(process.stdout, command)
            finally:
                process.kill()
        try:
            float(answer.split()[-1])
        except (ValueError, IndexError):
            return False
        return True

    def _start(self, pipe: str, account: Account) -> None:
        assert self._program is not None
        command = ["/bin/sh", "-c", _PREPARE, self._program]
        # The daemon keeps what it inherits: it must not keep a pipe of this process open.
        with self._begun(command, pipe, account, subprocess.DEVNULL) as process:
            try:
                code = process.wait(_START_SECONDS)
            finally:
                process.kill()
        if code:
            raise subprocess.CalledProcessError(code, command)

    def _begun(self, command: list[str], pipe: str, account: Account, files: int) -> subprocess.Popen[bytes]:
        log = os.path.join(os.path.dirname(pipe), "log")
        env = {"PATH": self._path, "CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": log}
        as_account: dict[str, Any] = {}
        if account.uid != os.geteuid():
            as_account = {"user": account.uid, "group": account.gid, "extra_groups": list(account.groups)}
        return subprocess.Popen(
            command, env=env, bufsize=0, stdin=files, stdout=files, stderr=subprocess.DEVNULL, cwd="/", **as_account
        )


def _first_bytes(output: IO[bytes], command: list[str]) -> bytes:
    """The output up to its end, and no more than an answer has. Raises TimeoutExpired."""
    found, until = b"", time.monotonic() + _ANSWER_SECONDS
    ready = select.poll()
    ready.register(output, select.POLLIN)
    while len(found) < _MOST_ANSWER_BYTES:
        if not ready.poll(max(0.0, until - time.monotonic()) * 1000):
            raise subprocess.TimeoutExpired(command, _ANSWER_SECONDS)
        data = os.read(output.fileno(), _MOST_ANSWER_BYTES)
        if not data:
            break
        found += data
    return found
