"""A corral server that kills itself at a chosen place: run instead of the ordinary entry point.

CRASH_AT=before-launch:N dies when the N-th launch is about to reach the engine: the plan is committed, nothing runs.
CRASH_AT=after-launch:N dies right behind it: the process runs, the server has heard nothing.
"""

from __future__ import annotations

import os
import signal

from corral.cli.main import main
from corral.control.ports import LaunchOrder
from corral.engines.local.engine import LocalEngine


def crash_at(place: str, number: int) -> None:
    launch = LocalEngine.launch
    calls = 0

    def dying_launch(self: LocalEngine, order: LaunchOrder) -> None:
        nonlocal calls
        calls += 1
        if place == "before-launch" and calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        launch(self, order)
        if place == "after-launch" and calls == number:
            os.kill(os.getpid(), signal.SIGKILL)

    LocalEngine.launch = dying_launch  # type: ignore[method-assign]


if __name__ == "__main__":
    place, _, number = os.environ.get("CRASH_AT", "").partition(":")
    if place:
        crash_at(place, int(number))
    main()
