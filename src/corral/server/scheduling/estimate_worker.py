"""Keeps estimated starts current, on a thread of its own.

Whenever the picture has changed, and now and then because time has passed, a copy of it is taken between two turns of
the controller, and everything else happens here. How often depends on what it costs: this thread works for a small part
of the time only, and lets others go on between two steps.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from corral.control.live.controller import Controller
from corral.control.live.worker import Worker, WorkerStopped, log_failure
from corral.control.ports import Clock, Store
from corral.control.scheduling import estimates
from corral.control.scheduling.estimates import Wait
from corral.core.model import Job, JobState
from corral.core.scheduling.forecast.accuracy import PastEstimate, calibrate, horizon_of
from corral.core.scheduling.forecast.arrivals import NO_RECENT_JOBS
from corral.core.scheduling.forecast.estimates import Estimate, Forecast, Forecaster
from corral.core.snapshot.replica import SnapshotCopy

log = logging.getLogger("corral.server.scheduling.estimate_worker")

#: At least so long between two rounds, and so many times what a round took.
REST_SECONDS = 2.0
REST_FACTOR = 9.0
#: Estimates grow old although nothing happens: what should have ended has not.
LONGEST_SECONDS = 30.0
#: Rows that share one request to the controller.
BATCH = 500
#: Work at one go, and how long others are let go on.
_STRETCH_SECONDS = 0.004
_BREATH_SECONDS = 0.0005
_ASK_SECONDS = 30.0


class Stopped(WorkerStopped):
    """The server stops: nobody waits for the rest of the forecast."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Current:
    """One estimate, and when it was made."""

    estimate: Estimate
    made_at: float


class EstimateWorker:
    def __init__(
        self, *, controller: Controller, store: Store, clock: Clock, announce: Callable[[float], None]
    ) -> None:
        """`announce` is told when there are new estimates, and must be quick."""
        self._controller = controller
        self._store = store
        self._clock = clock
        self._announce = announce
        self._forecaster = Forecaster()
        #: for whoever uses the forecaster
        self._lock = threading.Lock()
        self._forecast = Forecast(at=0.0)
        self._waits: frozenset[Wait] = frozenset()
        self._revision: int | None = None
        #: what is looked back at, the oldest first
        self._told: list[PastEstimate] = []
        #: who came lately, and comes again
        self._arrivals = estimates.Arrivals((), since=clock.now())
        self._recent = NO_RECENT_JOBS
        #: of every wait whose outcome is open, the horizon of what was kept last
        self._kept: dict[Wait, int] = {}
        self._worker = Worker("estimates", self._round, every_seconds=REST_SECONDS, first_after=REST_SECONDS)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        with self._store.read() as tables:
            self._told = tables.estimates.latest(estimates.LOOKED_BACK)
            still_open = tables.estimates.open()
            self._arrivals = estimates.arrivals_known(tables, self._clock.now())
        for one in still_open:
            self._kept[one.job_id, one.attempt] = horizon_of(one.p50 - one.made_at)
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def of(self, job: Job) -> Current | None:
        """Of a job that waits; None while nothing can be told."""
        return self.of_wait(estimates.wait_of(job)) if job.state is JobState.QUEUED else None

    def of_wait(self, wait: Wait) -> Current | None:
        """Of a job by its id and the attempt that it waits for."""
        forecast = self._forecast
        found = forecast.estimates.get(wait[0]) if wait in self._waits else None
        return None if found is None else Current(estimate=found, made_at=forecast.at)

    def foresee(self, picture: SnapshotCopy, job: Job, now: float) -> Estimate | None:
        """When one more job would start. Takes as long as a round; nothing is kept of it."""
        with self._lock:
            return self._made(replace(picture, jobs={**picture.jobs, job.id: job}), now).estimates.get(job.id)

    def look(self) -> float:
        """One round; how long it took."""
        begun = time.monotonic()
        picture = self._controller.inspect(estimates.take_picture).result(_ASK_SECONDS)
        now = self._clock.now()
        self._settle(picture)
        is_old = abs(now - self._forecast.at) >= LONGEST_SECONDS
        if picture.revision == self._revision and not is_old:
            return 0.0
        self._recent = self._arrivals.see(picture, now)
        with self._lock:
            forecast = self._made(picture, now)
        had_any, self._forecast, self._revision = bool(self._forecast.estimates), forecast, picture.revision
        self._waits = frozenset(estimates.wait_of(picture.jobs[job_id]) for job_id in forecast.estimates)
        self._keep(estimates.worth_keeping(forecast, picture, self._kept))
        if forecast.estimates or had_any:
            self._announce(now)
        return time.monotonic() - begun

    # ---------------------------------------------------------------- inside

    def _round(self) -> float:
        try:
            took = self.look()
        except Exception:
            # Those who ask are told nothing that is old.
            self._forecast, self._revision = Forecast(at=0.0), None
            raise
        return max(REST_SECONDS, REST_FACTOR * took)

    def _made(self, picture: SnapshotCopy, now: float) -> Forecast:
        return self._forecaster.forecast(
            picture,
            now,
            calibration=calibrate(self._told, now),
            recent=self._recent,
            pause=_Breathing(self._worker).pause,
        )

    def _settle(self, picture: SnapshotCopy) -> None:
        over = [wait for wait in self._kept if not estimates.is_waiting(picture, wait)]
        for begin in range(0, len(over), BATCH):
            batch = over[begin : begin + BATCH]
            started = self._controller.execute(estimates.settle, batch).result(_ASK_SECONDS)
            self._told = estimates.with_outcomes(self._told, batch, started)
            for wait in batch:
                del self._kept[wait]

    def _keep(self, told: list[PastEstimate]) -> None:
        for begin in range(0, len(told), BATCH):
            batch = told[begin : begin + BATCH]
            self._controller.execute(estimates.keep, batch).add_done_callback(
                log_failure(log, "estimates could not be stored")
            )
        self._told = [*self._told, *told][-estimates.LOOKED_BACK :]
        for one in told:
            self._kept[one.job_id, one.attempt] = horizon_of(one.p50 - one.made_at)


class _Breathing:
    """Lets the other threads of the process go on."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._since = time.monotonic()

    def pause(self) -> None:
        if time.monotonic() - self._since < _STRETCH_SECONDS:
            return
        if self._worker.is_stopping:
            raise Stopped
        time.sleep(_BREATH_SECONDS)
        self._since = time.monotonic()
