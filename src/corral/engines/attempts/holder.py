"""The program of an allocation without a program: waits until a program is given, then becomes that program.

It is run by path, with the standard library only, on any node. The program arrives as a file in the job's directory, so
that this works wherever that directory is shared.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.2


def main() -> None:
    program_file = Path(os.environ["CORRAL_JOB_DIR"]) / "program.json"
    print(f"corral: holding GPUs {os.environ.get('CUDA_VISIBLE_DEVICES', '')}, waiting for a program", flush=True)  # noqa: T201
    while not program_file.exists():
        time.sleep(POLL_SECONDS)
    program = json.loads(program_file.read_text())
    command = program["command"]
    os.environ.update(program.get("env", {}))
    try:
        if program.get("workdir"):
            os.chdir(program["workdir"])
        os.execvp(command[0], command)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        sys.exit(f"corral: cannot run {command[0]!r} in {os.getcwd()}: {error.strerror}{place}")


if __name__ == "__main__":
    main()
