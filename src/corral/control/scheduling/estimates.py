"""Estimated starts of the live system: the snapshot they are made from, which of them are kept, and what became of
those.

A first estimate of every wait is kept, and another one whenever the start has come so much nearer that it belongs to
the next shorter horizon: so it is known how good estimates are from far and from near. A job that never started says
nothing about them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.ports import Transaction
from corral.control.records import JobFilter
from corral.core.model import Job, JobState, attempt_id
from corral.core.scheduling.forecast.accuracy import Accuracy, PastEstimate, accuracy_of, by_horizon, horizon_of
from corral.core.scheduling.forecast.arrivals import DAY, Recent, came_at
from corral.core.scheduling.forecast.estimates import Forecast
from corral.core.scheduling.forecast.life_tables import Tables
from corral.core.snapshot.replica import SnapshotCopy, copy_of

#: How many are looked back at, by people and by the next estimates.
LOOKED_BACK = 5000
#: Jobs of the last day that are read when a server starts.
REMEMBERED = 1000
#: How many single ones are shown.
SHOWN = 50

#: A start has changed much if it moves by this, and by this part of the wait that was expected.
MUCH_SECONDS = 3600.0
MUCH_PART = 0.5
#: The owner of several jobs hears of one of them in this time.
QUIET_SECONDS = 3600.0

#: A job, and the attempt that it waits for.
Wait = tuple[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """How good estimates have been."""

    since: float
    overall: Accuracy
    horizons: tuple[tuple[str, Accuracy], ...]
    #: the latest first
    recent: tuple[PastEstimate, ...]


def copy_snapshot(state: State) -> tuple[SnapshotCopy, Tables]:
    """A copy to estimate from, with the life tables, taken between two turns: it takes milliseconds, whatever
    follows."""
    return copy_of(state.snapshot), state.run_times.life_tables.copy()


class Arrivals:
    """Recent arrivals, by the snapshots that were read: a job that came and went between two snapshots is missed."""

    def __init__(self, known: Iterable[Job], since: float) -> None:
        self._since = since
        #: by their ids, in the order in which they were queued
        self._jobs = {job.id: job for job in sorted(known, key=came_at) if came_at(job) >= since}

    def see(self, snapshot: SnapshotCopy, now: float) -> Recent:
        """The arrivals of the last day, with those that are new in the snapshot."""
        fresh = [job for job_id, job in snapshot.jobs.items() if job_id not in self._jobs and job.attempt <= 1]
        for job in sorted(fresh, key=came_at):
            self._jobs[job.id] = job
        begin = max(self._since, now - DAY)
        for job_id in [job_id for job_id, job in self._jobs.items() if came_at(job) < begin]:
            if job_id not in snapshot.jobs:
                del self._jobs[job_id]
        jobs = [job for job in self._jobs.values() if came_at(job) >= begin]
        return Recent(jobs=tuple(sorted(jobs, key=came_at)), since=self._since)


def arrivals_known(tables: Transaction, now: float) -> Arrivals:
    """The stored arrivals of the last day, for the start of a server."""
    page = tables.jobs.page(JobFilter(since=now - DAY), sort="-created_at", cursor=None, limit=REMEMBERED)
    jobs = [record.job for record in page.items if record.job.queued_at is not None]
    first = tables.jobs.page(JobFilter(), sort="created_at", cursor=None, limit=1).items
    since = min((record.job.created_at for record in first), default=now)
    # Where there are more than are remembered, nothing is missing from the oldest of those on.
    if page.next_cursor is not None:
        since = min(job.created_at for job in jobs) if jobs else now
    return Arrivals(jobs, max(since, now - DAY))


def wait_of(job: Job) -> Wait:
    return job.id, job.attempt + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A job that is expected to start at another time than its owner knows."""

    job_id: str
    before: float
    after: float

    @property
    def shift_seconds(self) -> float:
        return abs(self.after - self.before)


class Expectations:
    """The starts that owners know: the first estimate of each wait, or the one that they heard of last. They are not
    stored; after a restart the next estimates are the known ones."""

    def __init__(self) -> None:
        #: the expected start, and when it was estimated
        self._known: dict[Wait, tuple[float, float]] = {}
        #: when an owner heard of a change
        self._noted_at: dict[str, float] = {}

    def see(self, forecast: Forecast, snapshot: SnapshotCopy) -> list[Change]:
        """The changes that owners should hear of: of each owner the largest one, and not more often than
        `QUIET_SECONDS`."""
        self._noted_at = {user: at for user, at in self._noted_at.items() if 0 <= forecast.at - at < QUIET_SECONDS}
        known: dict[Wait, tuple[float, float]] = {}
        found: dict[str, Change] = {}
        for job_id, estimate in forecast.estimates.items():
            job = snapshot.jobs[job_id]
            expected, made_at = known[wait_of(job)] = self._known.get(wait_of(job), (estimate.p50, forecast.at))
            change = Change(job_id=job_id, before=expected, after=estimate.p50)
            is_much = change.shift_seconds >= max(MUCH_SECONDS, MUCH_PART * (expected - made_at))
            if is_much and job.user not in self._noted_at:
                found[job.user] = max(
                    found.get(job.user, change), change, key=lambda candidate: candidate.shift_seconds
                )
        for user, change in found.items():
            self._noted_at[user] = forecast.at
            known[wait_of(snapshot.jobs[change.job_id])] = (change.after, forecast.at)
        self._known = known
        return list(found.values())


def note_changes(work: Work, changes: Collection[Change]) -> None:
    """An event for the owner of each job that still waits."""
    for change in changes:
        job = work.state.snapshot.jobs.get(change.job_id)
        if job is not None and job.state is JobState.QUEUED:
            action = "job.starts-later" if change.after > change.before else "job.starts-earlier"
            detail = {"expected_before": change.before, "expected_at": change.after}
            work.record(SYSTEM, action, job.id, owner=job.user, detail=detail)


def is_waiting(snapshot: SnapshotCopy, wait: Wait) -> bool:
    job = snapshot.jobs.get(wait[0])
    return job is not None and job.state is JobState.QUEUED and wait_of(job) == wait


def worth_keeping(forecast: Forecast, snapshot: SnapshotCopy, kept: Mapping[Wait, int]) -> list[PastEstimate]:
    """The new estimates of a forecast to store; `kept` has the horizon of the last stored estimate of each wait."""
    found = []
    for job_id, estimate in forecast.estimates.items():
        job = snapshot.jobs[job_id]
        horizon = horizon_of(estimate.p50 - forecast.at)
        # Who starts with the next cycle has nothing to wait for.
        if estimate.p90 <= forecast.at or kept.get(wait_of(job), horizon + 1) <= horizon:
            continue
        found.append(
            PastEstimate(
                job_id=job_id,
                attempt=job.attempt + 1,
                queue=job.queue,
                user=job.user,
                made_at=forecast.at,
                p50=estimate.p50,
                p90=estimate.p90,
                raw_p50=estimate.raw_p50,
                raw_p90=estimate.raw_p90,
            )
        )
    return found


def keep(work: Work, estimates: Collection[PastEstimate]) -> None:
    work.tx.estimates.add(list(estimates))


def settle(work: Work, over: Collection[Wait]) -> dict[Wait, float]:
    """Ends the estimates of jobs that wait no longer: stores the start of those that have started, withdraws the
    others.
    """
    attempts = work.tx.attempts.get([attempt_id(*wait) for wait in over])
    started = {wait: attempts[attempt_id(*wait)].planned_at for wait in over if attempt_id(*wait) in attempts}
    for job_id, number in [wait for wait in over if wait not in started]:
        # What was used is kept longer than the job itself.
        for record in work.tx.usage.of_job(job_id):
            if record.attempt_id == attempt_id(job_id, number):
                started[job_id, number] = record.planned_at
    work.tx.estimates.settle(started)
    work.tx.estimates.withdraw([wait for wait in over if wait not in started])
    return started


def with_outcomes(
    estimates: Iterable[PastEstimate], over: Collection[Wait], started: Mapping[Wait, float]
) -> list[PastEstimate]:
    """The same, as they are after `settle`."""
    gone = {wait for wait in over if wait not in started}
    return [
        replace(estimate, started_at=started[estimate.job_id, estimate.attempt])
        if estimate.started_at is None and (estimate.job_id, estimate.attempt) in started
        else estimate
        for estimate in estimates
        if estimate.started_at is not None or (estimate.job_id, estimate.attempt) not in gone
    ]


def summary(tables: Transaction, since: float, now: float, whose: str | None = None) -> Summary:
    """The accuracy of all users' estimates; single estimates only of one user, if one is named."""
    estimates = tables.estimates.latest(LOOKED_BACK, since)
    shown = [estimate for estimate in estimates if estimate.started_at is not None and whose in (None, estimate.user)]
    return Summary(
        since=since,
        overall=accuracy_of(estimates, now),
        horizons=tuple(by_horizon(estimates, now)),
        recent=tuple(shown[: -SHOWN - 1 : -1]),
    )
