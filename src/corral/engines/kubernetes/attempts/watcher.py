"""Reports changes of attempts soon after their pods change, and repeats what Kubernetes has not done yet.

Nothing is polled: the watches wake this worker. Attempts that wait for something with a time limit are looked at once
a second; without such an attempt it sleeps.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from corral.control.live.worker import Worker
from corral.control.ports import AttemptPhase, AttemptStatus, EngineUnavailable
from corral.engines.kubernetes.attempts.pod_attempt import Attempt

log = logging.getLogger("corral.engines.kubernetes")

IDLE_SECONDS = 60.0
#: After Kubernetes did not answer.
LONGEST_PAUSE_SECONDS = 10.0


class Watched(Protocol):
    def attempt(self, attempt_id: str) -> Attempt | None: ...

    def waiting(self) -> list[str]:
        """Attempts for which something is due after a time."""

    def refresh(self, attempt: Attempt) -> bool:
        """Whether its pods are known at this moment: otherwise it must be looked at later. Raises EngineUnavailable."""

    def clean(self) -> None:
        """Remove pods that are not needed any more. Raises EngineUnavailable."""


class Watcher:
    def __init__(self, engine: Watched, *, look_seconds: float, at_start: Callable[[], None] = lambda: None) -> None:
        """`at_start` is called on the worker's thread before anything is reported."""
        self._engine = engine
        self._look_seconds = look_seconds
        self._sinks: list[Callable[[AttemptStatus], None]] = []
        self._lock = threading.Lock()
        self._touched: set[str] = set()
        self._looked_at = 0.0
        self._pause = look_seconds
        #: to look at again as soon as Kubernetes answers
        self._unseen: set[str] = set()
        self._worker = Worker("kubernetes-watcher", self._round, every_seconds=IDLE_SECONDS, at_start=at_start)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._sinks.append(sink)

    def look_at(self, attempt_ids: Iterable[str] = ()) -> None:
        """Something has changed for these attempts, or in general."""
        with self._lock:
            self._touched.update(attempt_ids)
        self._worker.wake()

    def _round(self) -> float:
        with self._lock:
            touched, self._touched = self._touched | self._unseen, set()
        self._unseen = set()
        if time.monotonic() - self._looked_at >= self._look_seconds:
            touched.update(self._engine.waiting())
            self._looked_at = time.monotonic()
        failed = [attempt_id for attempt_id in sorted(touched) if not self._guarded(partial(self._look_at, attempt_id))]
        cleaned = self._guarded(self._engine.clean)
        if failed or not cleaned:
            with self._lock:
                self._touched.update(failed)
            self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
            return self._pause
        self._pause = self._look_seconds
        return self._look_seconds if self._unseen or self._engine.waiting() else IDLE_SECONDS

    def _guarded(self, work: Callable[[], None]) -> bool:
        """No error of one attempt may hold up the others: the next round may succeed."""
        try:
            work()
        except EngineUnavailable as error:
            if not self._worker.is_stopping:
                log.warning("%s", error)
            return False
        except Exception:
            log.exception("an attempt could not be refreshed")
            return False
        return True

    def _look_at(self, attempt_id: str) -> None:
        attempt = self._engine.attempt(attempt_id)
        if attempt is None:
            return
        try:
            if not self._engine.refresh(attempt):
                self._unseen.add(attempt_id)
        finally:
            self._report(attempt)

    def _report(self, attempt: Attempt) -> None:
        status = attempt.status()
        if status is None or status.phase is AttemptPhase.STARTING or status.phase is attempt.reported:
            return
        if attempt.reported is None and status.phase is AttemptPhase.ENDED and len(attempt.up) == len(attempt.nodes):
            self._send(AttemptStatus(attempt_id=attempt.id, phase=AttemptPhase.RUNNING, at=max(attempt.up.values())))
        attempt.reported = status.phase
        self._send(status)

    def _send(self, status: AttemptStatus) -> None:
        for sink in self._sinks:
            sink(status)
