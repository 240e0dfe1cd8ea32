"""Observation of clusters: each is observed every few seconds on its own thread, so that a slow cluster does not delay
the others. In between, engines report changes themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from corral.control.live.reconcile import not_taken, report
from corral.control.live.turn import Request
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker
from corral.control.ports import AttemptPhase, AttemptStatus, Clock
from corral.core.model import EndReason

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

    def observe_soon(self) -> None:
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


class EngineReports:
    """Passes reports of engines and outboxes to the controller. No caller waits for an answer."""

    def __init__(
        self,
        clock: Clock,
        put: Callable[[Request], None],
        observe_soon: Callable[[], None],
        done: Callable[[Future[Any]], None],
    ) -> None:
        """`done` is called with the answer of each report."""
        self._clock = clock
        self._put = put
        self._observe_soon = observe_soon
        self._done = done

    def status_changed(self, status: AttemptStatus) -> None:
        self._take_in(lambda work: report(work, status))
        if status.reason in (EndReason.NODE_LOST, EndReason.PREEMPTED):
            # Before the next regular observation, jobs would be started on a node that is lost or used by others.
            self._observe_soon()

    def launch_failed(self, failed: str, message: str) -> None:
        self.launch_refused(failed, message, EndReason.LOST)

    def launch_refused(self, refused: str, message: str, reason: EndReason = EndReason.LAUNCH_ERROR) -> None:
        self.status_changed(
            AttemptStatus(
                attempt_id=refused,
                phase=AttemptPhase.ENDED,
                at=self._clock.now(),
                reason=reason,
                message=message,
            )
        )

    def launch_not_taken(self, attempt_id: str, reason: str) -> None:
        self._take_in(lambda work: not_taken(work, attempt_id, reason))

    def _take_in(self, run: Callable[[Work], None]) -> None:
        request = Request(run=run, is_patient=True)
        request.answer.add_done_callback(self._done)
        self._put(request)
