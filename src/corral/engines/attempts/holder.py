"""The program of an allocation without a program: waits until a program is given, then becomes that program.

It is run by path, with the standard library only, on each node of the allocation. The program arrives as a file in the
job's directory, so that this works wherever that directory is shared. The GPUs of the node are filled in here: they
differ between nodes, and an attempt after a resize has others.

The platform's warning is SIGTERM. A program that cannot handle it is started as a child that ignores it, and gets
another signal, or a file, in its place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

POLL_SECONDS = 0.2
#: How a program is warned; any other value is the name of a signal.
BY_RESTART, BY_FILE = "restart", "file"
#: The variable with the path of the file that appears as a warning.
NOTICE_VARIABLE = "CORRAL_NOTICE_FILE"


def main() -> None:
    program_file = Path(os.environ["CORRAL_JOB_DIR"]) / "program.json"
    print(f"corral: holding GPUs {os.environ.get('CUDA_VISIBLE_DEVICES', '')}, waiting for a program", flush=True)  # noqa: T201
    while not program_file.exists():
        time.sleep(POLL_SECONDS)
    program = json.loads(program_file.read_text())
    values = placeholders(os.environ)
    command = [filled(argument, values) for argument in program["command"]]
    os.environ.update({name: filled(value, values) for name, value in program.get("env", {}).items()})
    try:
        if program.get("workdir"):
            os.chdir(program["workdir"])
        notify = program.get("notify", BY_RESTART)
        if notify == BY_RESTART:
            os.execvp(command[0], command)
        sys.exit(run_warned(command, notify))
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        sys.exit(f"corral: cannot run {command[0]!r} in {os.getcwd()}: {error.strerror}{place}")


def placeholders(env: Mapping[str, str]) -> dict[str, str]:
    """The values that a program's command and environment may name."""
    gpus = env.get("CUDA_VISIBLE_DEVICES", "")
    return {
        "{gpu_list}": gpus,
        "{gpu_count}": str(len(gpus.split(",")) if gpus else 0),
        "{node_rank}": env.get("CORRAL_RANK", "0"),
        "{node_count}": env.get("NNODES", "1"),
    }


def filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def run_warned(command: Sequence[str], notify: str) -> int:
    """Run the program until its end; pass a warning on as a file or a signal. Returns the exit code."""
    notice = Path(os.environ["CORRAL_JOB_DIR"]) / f"notice-{os.environ.get('CORRAL_RANK', '0')}.json"
    notice.unlink(missing_ok=True)
    os.environ[NOTICE_VARIABLE] = str(notice)
    # A warning that arrives before the program runs is passed on as soon as it does.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # The only thread, so that code between fork and exec is safe.
    child: subprocess.Popen[Any] = subprocess.Popen(command, preexec_fn=_ignore_warning)

    def warn(number: int, frame: FrameType | None) -> None:
        if notify == BY_FILE:
            draft = notice.with_suffix(".part")
            draft.write_text(json.dumps({"warned_at": time.time()}))
            draft.replace(notice)
        else:
            child.send_signal(signal.Signals[notify])

    signal.signal(signal.SIGTERM, warn)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    code = child.wait()
    return code if code >= 0 else 128 - code


def _ignore_warning() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


if __name__ == "__main__":
    main()
