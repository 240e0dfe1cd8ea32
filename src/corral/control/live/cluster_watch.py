"""Observes one cluster every few seconds, on a thread of its own, so that a slow cluster does not delay the others."""

from __future__ import annotations

from collections.abc import Callable

from corral.control.live.worker import Worker
from corral.control.ports import Clock

#: A cluster that takes long to answer is asked more seldom: no more than this part of the time is spent on it.
BUSY_SHARE = 0.3
MAX_PAUSE_SECONDS = 60.0


def pause_after(took_seconds: float, regular_seconds: float) -> float:
    """Seconds until the next observation. An engine that asks for longer pauses gets them."""
    return max(regular_seconds, min(MAX_PAUSE_SECONDS, took_seconds / BUSY_SHARE))


class Watch:
    def __init__(self, name: str, look: Callable[[], bool], regular_seconds: float, clock: Clock) -> None:
        """`look` is called after each pause, and says whether the cluster answered: one that does not is tried again at
        the regular time, so that its return is seen soon."""
        self._look = look
        self._regular_seconds = regular_seconds
        self._clock = clock
        self._worker = Worker(f"watch-{name}", self._looked, every_seconds=regular_seconds, first_after=regular_seconds)

    def start(self) -> None:
        self._worker.start()

    def look_soon(self) -> None:
        self._worker.wake()

    def ask_to_stop(self) -> None:
        self._worker.ask_to_stop()

    def stop(self) -> None:
        self._worker.stop()

    def _looked(self) -> float:
        begun = self._clock.monotonic()
        answered = self._look()
        took = self._clock.monotonic() - begun if answered else 0.0
        return pause_after(took, self._regular_seconds)
