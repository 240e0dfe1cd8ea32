"""Estimated starts: when each waiting job will start, computed by running the same scheduler forward in time.

Several rollouts are run, from one in which all jobs end early to one in which all jobs end late. In each rollout the
scheduler decides as it does live; after a number of starts the rest of the rollout only counts GPUs (`count_rollout`).
The median of a job's starts over all rollouts is its p50, the latest start its p90. Both are then scaled by the errors
of earlier estimates (`accuracy`). The same snapshot always gives the same estimates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

from corral.core.counts import counted
from corral.core.model import DEFAULT_POOL, Job, JobState
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.forecast.accuracy import NOTHING_KNOWN, Calibration, Stretch, stretched
from corral.core.scheduling.forecast.arrivals import NO_RECENT_JOBS, Recent, coming
from corral.core.scheduling.forecast.count_lines import Order
from corral.core.scheduling.forecast.count_rollout import CountRollout
from corral.core.scheduling.forecast.life_tables import NO_TABLES, Tables
from corral.core.scheduling.forecast.remaining_time import Length, Outlook, RolloutSample, length_of
from corral.core.scheduling.forecast.rollout import Rollout
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.replica import Replica, SnapshotCopy, copy_of

#: The quantiles of the earliest and the latest rollout; the others are at equal distances between them.
_EARLY, _LATE = 0.1, 0.9
#: How many of the last starts two rollouts are compared by.
_LAST_STARTS = 500
#: Without uncertainty there is nothing to correct.
_KNOWN = Stretch()


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """The effort of a forecast. It is repeated every few seconds, so that more would not pay."""

    #: for up to so many waiting jobs: the number of rollouts (odd, so that there is a middle one), and the number of
    #: starts and cycles that the scheduler itself decides in each
    sizes: tuple[tuple[float, int, int], ...] = ((200, 9, 400), (2000, 5, 200), (math.inf, 3, 40))
    #: counted starts in all rollouts but the middle one; later starts are extrapolated from the last of these
    counted: int = 3000

    def exact(self, waiting: int) -> int:
        return next(exact for most, _, exact in self.sizes if waiting <= most)

    def rollout_samples(self, waiting: int) -> list[RolloutSample]:
        count = next(count for most, count, _ in self.sizes if waiting <= most)
        return [
            RolloutSample(number=number, late=NormalDist().inv_cdf(_EARLY + (_LATE - _EARLY) * number / (count - 1)))
            for number in range(count)
        ]


class Estimate(NamedTuple):
    """When a waiting job is expected to start."""

    p50: float
    p90: float
    #: before the correction by earlier outcomes
    raw_p50: float
    raw_p90: float
    #: the number of rollouts, and whether GPUs were only counted
    rollouts: int = 1
    is_counted: bool = False
    #: the number of jobs in front of it without a known run time
    unknown: int = 0
    #: the number of earlier outcomes that it was corrected by
    outcomes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    at: float
    #: by waiting job whose start can be estimated
    estimates: Mapping[str, Estimate] = field(default_factory=dict)


def forecast(
    snapshot: ClusterSnapshot,
    now: float,
    *,
    effort: Effort = Effort(),  # noqa: B008 - an immutable value
    calibration: Calibration = NOTHING_KNOWN,
    recent: Recent = NO_RECENT_JOBS,
    tables: Tables = NO_TABLES,
) -> Forecast:
    """The estimated start of each waiting job, if recent arrivals repeat. The snapshot is not changed."""
    return Forecaster().forecast(
        copy_of(snapshot), now, effort=effort, calibration=calibration, recent=recent, tables=tables
    )


class Forecaster:
    """Keeps a replica of the snapshot between two forecasts, so that the next one costs what has changed."""

    def __init__(self) -> None:
        self._replica = Replica()
        #: run times at the last forecast, with the jobs and rules that they were computed for
        self._known: dict[str, Length] = {}
        self._before: Mapping[str, Job] = {}
        self._rules = OrderingRules()

    def forecast(
        self,
        copy: SnapshotCopy,
        now: float,
        *,
        effort: Effort = Effort(),  # noqa: B008 - an immutable value
        calibration: Calibration = NOTHING_KNOWN,
        recent: Recent = NO_RECENT_JOBS,
        tables: Tables = NO_TABLES,
        pause: Callable[[], None] = lambda: None,
    ) -> Forecast:
        """`pause` is called often; an exception from it ends the forecast and does not harm the next one."""
        # 1. Jobs that start now start in every rollout.
        outlook = Outlook(tables, copy.jobs.values(), now)
        lengths = {job_id: outlook.refined(copy.jobs[job_id], length) for job_id, length in self._lengths(copy).items()}
        base, plan = self._begin(copy, now, lengths)
        snapshot = self._replica.snapshot
        starting = {start.job_id for start in plan.starts}
        waiting = [job for job in base.jobs.values() if job.state is JobState.QUEUED]
        # 2. The rollouts. Without uncertainty there is only one.
        comes = recent.period(now) is not None and bool(recent.jobs)
        is_sampled = comes or any(length.sigma or length.hazard is not None for length in lengths.values())
        samples = effort.rollout_samples(len(waiting)) if is_sampled else [RolloutSample()]
        exact = effort.exact(len(waiting))
        order = Order(snapshot, lengths) if len(waiting) >= exact else None
        middle, *others = samples[len(samples) // 2 :] + samples[: len(samples) // 2]
        rollouts: list[_Ran] = []
        for sample in (middle, *others) if waiting else ():
            self._replica.follow(base)
            rollout = Rollout(
                snapshot, now, sample, lengths, outlook=outlook, arrivals=coming(recent, now, sample), pause=pause
            )
            ran = _run(rollout, exact, order, effort.counted if rollouts else math.inf)
            rollouts.append(_extended(ran, rollouts[0], now) if rollouts else ran)
        # 3. The estimates from all rollouts, corrected by earlier outcomes.
        unknown = _unknown_before(base, snapshot, lengths, rollouts[0].starts if rollouts else {})
        estimates = {job_id: _now(now) for job_id in starting}
        promised = _promised(base, plan)
        starts = [rollout.starts for rollout in rollouts]
        counted_from = rollouts[0].counted_from if rollouts else math.inf
        for job in waiting:
            found = _estimate(job, starts, now, counted_from, calibration, promised.get(job.id, math.inf))
            if found is not None:
                estimates[job.id] = found
        for job_id in unknown.keys() & estimates.keys():
            estimates[job_id] = estimates[job_id]._replace(unknown=unknown[job_id])
        return Forecast(at=now, estimates=estimates)

    def _lengths(self, copy: SnapshotCopy) -> dict[str, Length]:
        """The run times of all jobs; those of unchanged jobs are kept from the last forecast."""
        self._replica.follow(copy)
        rules, known, before = self._replica.snapshot.ordering, self._known, self._before
        if rules != self._rules:
            known = {}
        self._known = {
            job_id: known[job_id] if job_id in known and before[job_id] is job else length_of(job, rules)
            for job_id, job in copy.jobs.items()
        }
        self._before, self._rules = copy.jobs, rules
        return self._known

    def _begin(self, copy: SnapshotCopy, now: float, lengths: dict[str, Length]) -> tuple[SnapshotCopy, Plan]:
        snapshot = self._replica.snapshot
        plan = schedule(snapshot, now)
        if not (plan.starts or plan.resizes or plan.preemptions):
            return copy, plan
        Rollout(snapshot, now, RolloutSample(), lengths).apply(plan)
        return copy_of(snapshot), plan


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ran:
    starts: dict[str, float]
    #: the time from which on GPUs were only counted
    counted_from: float


def _run(rollout: Rollout, exact: float, order: Order | None, counted: float) -> _Ran:
    if rollout.run(exact):
        return _Ran(starts=rollout.starts, counted_from=math.inf)
    counted_from = rollout.now
    CountRollout(rollout, order or Order(rollout.snapshot, rollout.lengths), most_starts=counted).run()
    return _Ran(starts=rollout.starts, counted_from=counted_from)


def _extended(ran: _Ran, middle: _Ran, now: float) -> _Ran:
    """Starts beyond the counted ones: earlier or later than in the middle rollout by the ratio of the last starts."""
    known = ran.starts
    missing = [(job_id, at) for job_id, at in middle.starts.items() if job_id not in known]
    common = sorted((at, job_id) for job_id, at in ran.starts.items() if job_id in middle.starts)[-_LAST_STARTS:]
    if not missing or not common:
        return ran
    waits = math.fsum(at - now for at, _ in common)
    ratio = waits / max(1.0, math.fsum(middle.starts[job_id] - now for _, job_id in common))
    # No job that was not counted starts before the counted ones.
    last = common[-1][0]
    rest = {job_id: max(last, now + (at - now) * ratio) for job_id, at in missing}
    return _Ran(starts={**known, **rest}, counted_from=ran.counted_from)


def _estimate(
    job: Job,
    rollouts: Sequence[dict[str, float]],
    now: float,
    counted_from: float,
    calibration: Calibration,
    at_the_latest: float,
) -> Estimate | None:
    """The estimate of a job; None if the job does not start in every rollout."""
    job_id = job.id
    starts = [rollout.get(job_id, math.inf) for rollout in rollouts]
    is_counted = starts[0] > counted_from
    starts.sort()
    half, most = starts[len(starts) // 2] - now, starts[-1] - now
    if math.isinf(most):
        return None
    stretch = calibration.stretch(job.queue, half) if len(starts) > 1 else _KNOWN
    # The planned start is an upper bound, whatever the outcomes of earlier estimates were.
    longest = max(most, at_the_latest - now)
    p50 = min(stretched(half, stretch.p50), longest)
    p90 = max(p50, min(stretched(most, stretch.p90), longest))
    return Estimate(now + p50, now + p90, now + half, now + most, len(starts), is_counted, 0, stretch.outcomes)


def _promised(copy: SnapshotCopy, plan: Plan) -> dict[str, float]:
    """The latest start of each waiting job. There is none while a job without a time limit runs."""
    holding = (job for job in copy.jobs.values() if job.state is not JobState.QUEUED)
    if not all(math.isfinite(job.expected_end) for job in holding):
        return {}
    return {planned.job_id: planned.at for planned in plan.planned if planned.is_known}


def _now(now: float) -> Estimate:
    return Estimate(p50=now, p90=now, raw_p50=now, raw_p90=now)


def _unknown_before(
    copy: SnapshotCopy, snapshot: ClusterSnapshot, lengths: Mapping[str, Length], starts: Mapping[str, float]
) -> dict[str, int]:
    """The number of jobs without a known run time that run or start in the pool before each waiting job."""
    if all(length.is_known for length in lengths.values()):
        return {}
    pools = {queue.name: queue.pool for queue in snapshot.queues.values()}
    counts: dict[str, int] = defaultdict(int)
    for job in copy.jobs.values():
        if job.state is not JobState.QUEUED and not lengths[job.id].is_known:
            counts[pools.get(job.queue, DEFAULT_POOL)] += 1
    found: dict[str, int] = {}
    for job_id in sorted(starts, key=lambda candidate: starts[candidate]):
        waiting = copy.jobs.get(job_id)
        if waiting is None:
            continue
        pool = pools.get(waiting.queue, DEFAULT_POOL)
        found[job_id] = counts[pool]
        counts[pool] += not lengths[job_id].is_known
    return found


def basis_text(estimate: Estimate) -> str:
    """The basis of an estimate, as text for users."""
    if estimate.rollouts == 1:
        parts = ["the scheduler run forward, with run times that are known"]
    else:
        parts = [f"the scheduler run forward {estimate.rollouts} times, with run times from early to late"]
    if estimate.unknown:
        jobs = counted(estimate.unknown, "job")
        parts.append(f"nothing is known of the run time of {jobs} in front of it")
    if estimate.is_counted:
        parts.append("it is so far back that GPUs were only counted, not looked at one by one")
    if estimate.outcomes:
        parts.append(f"corrected by what became of {estimate.outcomes} earlier estimates")
    return "; ".join(parts)
