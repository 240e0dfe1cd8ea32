"""Looks at one cluster again and again, on a thread of its own: a cluster that is slow keeps nobody from the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from corral.control.ports import Clock

log = logging.getLogger("corral.control")

#: A cluster that takes long to answer is asked more seldom: no more than this part of the time is spent on it.
BUSY_SHARE = 0.3
MAX_PAUSE_SECONDS = 60.0


def pause_after(took_seconds: float, regular_seconds: float) -> float:
    """Until the next look. Whoever has asked for longer pauses gets them."""
    return max(regular_seconds, min(MAX_PAUSE_SECONDS, took_seconds / BUSY_SHARE))


class Watch:
    def __init__(self, name: str, look: Callable[[], bool], regular_seconds: float, clock: Clock) -> None:
        """`look` is called after each pause, and says whether the cluster answered: one that does not is tried again at
        the regular time, so that its return is seen soon."""
        self._name = name
        self._look = look
        self._regular_seconds = regular_seconds
        self._clock = clock
        self._now = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def look_soon(self) -> None:
        self._now.set()

    def stop(self) -> None:
        self._stopping.set()
        self._now.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30.0)

    def _run(self) -> None:
        pause = self._regular_seconds
        while True:
            self._now.wait(timeout=pause)
            self._now.clear()
            if self._stopping.is_set():
                return
            begun = self._clock.now()
            answered = self._looked()
            took = self._clock.now() - begun if answered else 0.0
            pause = pause_after(took, self._regular_seconds)

    def _looked(self) -> bool:
        try:
            return self._look()
        except Exception:
            # Nobody would look at this cluster any more; the next time it may go well.
            log.exception("cluster %s could not be looked at", self._name)
            return False
