"""A server in which one part hangs for ever: `HANGS_IN` names the part. The server creates the file `hangs` then."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from corral.cli.main import main
from corral.control.live.controller import Controller
from corral.engines.local.engine import LocalEngine
from corral.server.alerts.alert_worker import AlertWorker
from corral.server.routes.people import events

FOR_GOOD = threading.Event()


def hang(*_: Any, **__: Any) -> Any:
    (Path(os.environ["CORRAL_HOME"]) / "hangs").touch()
    FOR_GOOD.wait()


def hang_later(real: Any) -> Any:
    """The first look is part of the start."""
    count = 0

    def observe(engine: Any) -> Any:
        nonlocal count
        count += 1
        return real(engine) if count < 2 else hang()

    return observe


def break_it(place: str) -> None:
    if place == "launch":
        LocalEngine.launch = hang  # type: ignore[method-assign]
    elif place == "observe":
        LocalEngine.observe = hang_later(LocalEngine.observe)  # type: ignore[method-assign]
    elif place == "worker":
        AlertWorker.evaluate = hang  # type: ignore[method-assign]
    elif place == "controller":
        Controller._send = lambda self, work: hang() if work.instructions else None  # type: ignore[method-assign]
    elif place == "request":
        events._visible_page = hang


if __name__ == "__main__":
    break_it(os.environ["HANGS_IN"])
    main()
