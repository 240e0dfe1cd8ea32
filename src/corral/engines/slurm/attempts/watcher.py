"""Reports changes of attempts soon after they happen: polls the reports of nodes often, and queries Slurm rarely.

Polling the reports costs one read, whatever the number of attempts, and happens only while an attempt is not over.
Slurm's controller is queried every few seconds, and less often while it is slow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from corral.control.live.worker import Worker
from corral.control.ports import AttemptPhase, AttemptStatus, EngineUnavailable
from corral.engines.slurm.attempts.slurm_attempt import Attempt

if TYPE_CHECKING:
    from corral.engines.slurm.engine import SlurmEngine

log = logging.getLogger("corral.engines.slurm")

#: A slow controller is queried at least this often; one that does not answer at all, at least every MAX_AWAY_SECONDS.
MAX_PAUSE_SECONDS = 60.0
MAX_AWAY_SECONDS = 10.0
#: The largest part of the time that is spent querying Slurm.
_BUSY_SHARE = 0.03
#: The same for reading reports, which jobs of all users can write.
_LOOK_SHARE = 0.2


class Watcher:
    def __init__(self, engine: SlurmEngine, *, look_seconds: float, rescan_seconds: float) -> None:
        self._engine = engine
        self._look_seconds = look_seconds
        self._rescan_seconds = rescan_seconds
        self._sinks: list[Callable[[AttemptStatus], None]] = []
        self._pause = rescan_seconds
        self._rescan_at = 0.0
        self._worker = Worker("slurm-watcher", self._round, every_seconds=rescan_seconds)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._sinks.append(sink)

    def check_soon(self) -> None:
        self._worker.wake()

    def _round(self) -> float:
        begun = time.monotonic()
        self._guarded(lambda: self._report(self._engine.take_events()))
        looked = time.monotonic() - begun
        if time.monotonic() >= self._rescan_at:
            begun = time.monotonic()
            answered = self._guarded(lambda: self._report(self._engine.rescan()))
            took = time.monotonic() - begun
            self._pause = self._rescan_seconds if answered else min(MAX_AWAY_SECONDS, self._pause * 2)
            self._rescan_at = time.monotonic() + min(MAX_PAUSE_SECONDS, max(self._pause, took / _BUSY_SHARE))
        if looked > self._look_seconds:
            self._worker.pause(min(self._rescan_seconds, looked / _LOOK_SHARE - looked))
        # A launch or a stop wakes this worker by itself.
        return self._look_seconds if self._engine.is_busy else self._rescan_seconds

    def _guarded(self, work: Callable[[], None]) -> bool:
        """No error may end the thread: the next round may succeed."""
        try:
            work()
        except EngineUnavailable as error:
            if not self._worker.is_stopping:
                log.warning("%s", error)
            return False
        except Exception:
            log.exception("attempts could not be refreshed")
            return False
        return True

    def _report(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            status = attempt.status()
            if status is None or status.phase is AttemptPhase.STARTING or status.phase is attempt.reported:
                continue
            if attempt.reported is None and status.phase is AttemptPhase.ENDED and attempt.up:
                self._send(
                    AttemptStatus(attempt_id=attempt.id, phase=AttemptPhase.RUNNING, at=max(attempt.up.values()))
                )
            attempt.reported = status.phase
            self._send(status)

    def _send(self, status: AttemptStatus) -> None:
        for sink in self._sinks:
            sink(status)
