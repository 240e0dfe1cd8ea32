"""Keeps estimated starts current, on a thread of its own.

Whenever the snapshot has changed, and regularly as time passes, a copy of it is taken between two turns of the
controller, and the estimates are computed here. The frequency depends on the cost: this thread works for a small share
of the time only, and lets other threads run between two steps.
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
from corral.core.scheduling.forecast.life_tables import NO_TABLES, Tables
from corral.core.snapshot.replica import SnapshotCopy

log = logging.getLogger("corral.server.scheduling.estimate_worker")

#: Minimum pause between two rounds, and its multiple of the last round's duration.
REST_SECONDS = 2.0
REST_FACTOR = 9.0
#: Estimates become stale even without changes, because running jobs take longer than predicted.
LONGEST_SECONDS = 30.0
#: Rows that share one request to the controller.
BATCH = 500
#: Work without a pause, and the length of the pause for other threads.
_STRETCH_SECONDS = 0.004
_BREATH_SECONDS = 0.0005
_ASK_SECONDS = 30.0


class Stopped(WorkerStopped):
    """The server stops: the forecast is not needed any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Current:
    """One estimate, and when it was made."""

    estimate: Estimate
    made_at: float


class EstimateWorker:
    def __init__(
        self, *, controller: Controller, store: Store, clock: Clock, announce: Callable[[float], None]
    ) -> None:
        """`announce` is called when there are new estimates, and must be quick."""
        self._controller = controller
        self._store = store
        self._clock = clock
        self._announce = announce
        self._forecaster = Forecaster()
        #: held while the forecaster is used
        self._lock = threading.Lock()
        self._forecast = Forecast(at=0.0)
        self._waits: frozenset[Wait] = frozenset()
        self._revision: int | None = None
        #: past estimates, from which the accuracy is computed, the oldest first
        self._past: list[PastEstimate] = []
        #: recent arrivals, for the prediction of further ones
        self._arrivals = estimates.Arrivals((), since=clock.now())
        self._recent = NO_RECENT_JOBS
        #: tables of the last round
        self._tables: Tables = NO_TABLES
        #: for every open wait, the horizon of the estimate that was stored last
        self._kept: dict[Wait, int] = {}
        self._expectations = estimates.Expectations()
        self._is_loaded = False
        self._worker = Worker("estimates", self._round, every_seconds=REST_SECONDS, first_after=REST_SECONDS)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def of(self, job: Job) -> Current | None:
        """The estimate for a waiting job; None if there is none."""
        return self.of_wait(estimates.wait_of(job)) if job.state is JobState.QUEUED else None

    def of_wait(self, wait: Wait) -> Current | None:
        """The estimate for a job id and the attempt that it waits for."""
        forecast = self._forecast
        found = forecast.estimates.get(wait[0]) if wait in self._waits else None
        return None if found is None else Current(estimate=found, made_at=forecast.at)

    def estimate_new_job(self, snapshot: SnapshotCopy, job: Job, now: float) -> Estimate | None:
        """When one more job would start. Takes as long as a round; the result is not stored."""
        with self._lock:
            return self._made(replace(snapshot, jobs={**snapshot.jobs, job.id: job}), now).estimates.get(job.id)

    def look(self) -> float:
        """One round; how long it took."""
        begun = time.monotonic()
        if not self._is_loaded:
            self._load()
        snapshot, tables = self._controller.inspect(estimates.copy_snapshot).result(_ASK_SECONDS)
        now = self._clock.now()
        self._settle(snapshot)
        is_old = abs(now - self._forecast.at) >= LONGEST_SECONDS
        if snapshot.revision == self._revision and not is_old:
            return 0.0
        self._recent = self._arrivals.see(snapshot, now)
        with self._lock:
            self._tables = tables
            forecast = self._made(snapshot, now)
        had_any, self._forecast, self._revision = bool(self._forecast.estimates), forecast, snapshot.revision
        self._waits = frozenset(estimates.wait_of(snapshot.jobs[job_id]) for job_id in forecast.estimates)
        self._keep(estimates.worth_keeping(forecast, snapshot, self._kept))
        if changes := self._expectations.see(forecast, snapshot):
            noted = self._controller.execute(estimates.note_changes, changes)
            noted.add_done_callback(log_failure(log, "changed estimates could not be noted"))
        if forecast.estimates or had_any:
            self._announce(now)
        return time.monotonic() - begun

    # ---------------------------------------------------------------- inside

    def _load(self) -> None:
        """Loads stored estimates in the first round, so that the start of a server does not wait for all
        waiting jobs.
        """
        with self._store.read() as tables:
            self._past = tables.estimates.latest(estimates.LOOKED_BACK)
            still_open = tables.estimates.open()
            self._arrivals = estimates.arrivals_known(tables, self._clock.now())
        for estimate in still_open:
            self._kept[estimate.job_id, estimate.attempt] = horizon_of(estimate.p50 - estimate.made_at)
        self._is_loaded = True

    def _round(self) -> float:
        try:
            took = self.look()
        except Exception:
            # Old estimates are not shown.
            self._forecast, self._revision = Forecast(at=0.0), None
            raise
        return max(REST_SECONDS, REST_FACTOR * took)

    def _made(self, snapshot: SnapshotCopy, now: float) -> Forecast:
        return self._forecaster.forecast(
            snapshot,
            now,
            calibration=calibrate(self._past, now),
            recent=self._recent,
            tables=self._tables,
            pause=_Pauses(self._worker).pause,
        )

    def _settle(self, snapshot: SnapshotCopy) -> None:
        over = [wait for wait in self._kept if not estimates.is_waiting(snapshot, wait)]
        for begin in range(0, len(over), BATCH):
            batch = over[begin : begin + BATCH]
            started = self._controller.execute(estimates.settle, batch).result(_ASK_SECONDS)
            self._past = estimates.with_outcomes(self._past, batch, started)
            for wait in batch:
                del self._kept[wait]

    def _keep(self, made: list[PastEstimate]) -> None:
        for begin in range(0, len(made), BATCH):
            batch = made[begin : begin + BATCH]
            self._controller.execute(estimates.keep, batch).add_done_callback(
                log_failure(log, "estimates could not be stored")
            )
        self._past = [*self._past, *made][-estimates.LOOKED_BACK :]
        for estimate in made:
            self._kept[estimate.job_id, estimate.attempt] = horizon_of(estimate.p50 - estimate.made_at)


class _Pauses:
    """Pause, so that other threads of the process can run."""

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
