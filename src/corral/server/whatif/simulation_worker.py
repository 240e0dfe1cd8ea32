"""Runs one simulation in its own process: `python -m corral.server.whatif.simulation_worker FOLDER PARENT`.

The server gives it a low priority; it ends when the server is gone.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from pathlib import Path

from corral.server.whatif.simulation_orders import read_order, write_progress, write_result
from corral.simulator.whatif import Progress, compare

#: Share of the machine's memory that it may use; beyond, it fails, so that no job does.
MOST_MEMORY_BYTES = 4 * 2**30
#: Between two writes of the progress.
PROGRESS_SECONDS = 0.3


class Orphaned(Exception):
    """The server is gone."""


class Reporter:
    """Writes the progress regularly, and checks whether the server is still running."""

    def __init__(self, folder: Path, parent: int) -> None:
        self._folder = folder
        self._parent = parent
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_SECONDS
        if os.getppid() != self._parent:
            raise Orphaned
        write_progress(self._folder, progress)


def main(folder: Path, parent: int) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    begun = time.monotonic()
    try:
        order = read_order(folder)
        result = compare(order, Reporter(folder, parent))
    except Orphaned:
        return 3
    except Exception as error:  # noqa: BLE001 - the error is reported to the user
        traceback.print_exc()
        write_result(folder, {"error": f"{type(error).__name__}: {error}"})
        return 1
    write_result(folder, {"result": {**result, "seconds": time.monotonic() - begun}})
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
