"""The expected run time and cost of a job for ordering policies, and the settings for them.

The sort key of a waiting job does not depend on the present time: lines are kept sorted, so that the key must follow
from what is known when the job is queued. Waiting time counts all the same: see `shortest` and `weighted`. The rank of
a running job depends on time: its remaining run time shrinks every second.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Job, Prediction
from corral.core.quantities import format_duration


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """The weights of `weighted`. None is negative, and age always counts, so that no job starves."""

    #: for each level of priority
    priority: float = 1.0
    #: for each doubling of the GPUs
    size: float = 1.0
    #: for each doubling of the expected run time
    runtime: float = 1.0
    #: for each hour of waiting
    age: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderingRules:
    """Settings of the whole installation for orderings that use run times."""

    weights: Weights = field(default_factory=Weights)
    #: under `shortest`: GPU-hours of cost that an hour of waiting outweighs
    ageing: float = 0.01
    #: under `shortest` a job costs its run time × GPUs to this power: 1 is GPU-time, 0 run time alone. Below 1 large
    #: jobs wait less, above 1 small ones.
    size_power: float = 1.0
    #: the assumed run time of a job without a prediction and without a time limit
    unknown_seconds: float = 3600.0
    #: under `shortest`: the least lead over a running job without a time limit, as a part of its cost. What such a job
    #: has left is uncertain, so that a small lead is not worth a restart.
    unknown_margin: float = 0.85


class Rank(NamedTuple):
    """The position of a job among waiting and running jobs, in queues whose order preempts; smaller is first."""

    place: float
    #: the remaining cost, in the unit of `place`: the preemption margin is a part of this
    cost: float = 0.0
    #: the lead that a job needs to preempt this one, whatever the margin
    least_lead: float = 0.0


def expected_seconds(job: Job, rules: OrderingRules, ran_seconds: float = 0.0) -> float:
    """The expected run time from the next start, or the remaining time if the job has run for `ran_seconds` already:
    the median of similar runs, and never longer than the time limit.

    For a job without a time limit and with known quantiles of similar runs, the remaining time is `worth_seconds`. A
    job that runs longer than all similar runs (or than p90, if only that is known), and a job without a prediction, is
    assumed to take `unknown_seconds`, twice as long once it has run that long, and so on. So it moves behind new jobs,
    for longer each time.
    """
    most = job.time_left_seconds
    if most is not None:
        known = most if job.predicted is None else min(most, job.predicted.p50_seconds)
        return max(0.0, known - ran_seconds)
    # Lost attempts count: otherwise a preemption would make the job more urgent, and it would preempt in turn. But they
    # only show that the job takes longer than the longest of them: their work has to be done again.
    if job.predicted is not None:
        left = _left_of(job.predicted, *_ran_and_outlived(job, ran_seconds))
        if left is not None:
            return left
    behind, assumed = job.attained_seconds + job.ran_seconds + ran_seconds, rules.unknown_seconds
    while 0.0 < assumed <= behind:
        assumed *= 2
    return max(0.0, assumed - behind)


def _ran_and_outlived(job: Job, ran_seconds: float) -> tuple[float, float]:
    """The run time of this attempt, and the most run time of any attempt, both after the saved work. Both are computed
    from the whole work, so that they are exactly equal if nothing was lost."""
    done = job.saved_seconds + ran_seconds
    return done - job.saved_seconds, max(job.reached_seconds, done) - job.saved_seconds


def _left_of(predicted: Prediction, ran: float, outlived: float) -> float | None:
    """The remaining time of a job that has run for `ran`, and in an earlier attempt for `outlived`; None if it has run
    longer than all similar runs."""
    if predicted.spread:
        return worth_seconds(predicted.spread, ran, outlived)
    for total in (predicted.p50_seconds, predicted.p90_seconds):
        if outlived < total:
            return total - ran
    return None


def worth_seconds(spread: Sequence[float], ran: float, outlived: float = 0.0) -> float | None:
    """The Gittins index: the least run time per completed job over all cut-off times, if the jobs that remain of a set
    of similar jobs run until the cut-off and those that are not done then are given up. Jobs of which only the
    distribution of run times is known complete soonest on average if they are ordered by this index.

    The index is small if many jobs end soon, and grows while a job turns out to be a long one. A job whose attempt was
    lost starts again, and is known to take longer than `outlived`.
    """
    first = bisect_right(spread, max(ran, outlived))
    count = len(spread) - first
    if not count:
        return None
    best, ended_seconds = math.inf, 0.0
    # The hottest loop of a replay under `shortest`: no calls in it.
    for ended, seconds in enumerate(spread[first:], start=1):
        until = seconds - ran
        ended_seconds += until
        mean = (ended_seconds + (count - ended) * until) / ended
        if mean < best:
            best = mean
    return best


def ran_seconds(job: Job, now: float) -> float:
    """How long the present attempt has run."""
    return 0.0 if job.started_at is None or not job.state.holds_resources else max(0.0, now - job.started_at)


def next_fall_at(job: Job, rules: OrderingRules, now: float) -> float | None:
    """When a running job exceeds its expected run time and more is expected; None for a job with a time limit."""
    if job.time_left_seconds is not None:
        return None
    ran = ran_seconds(job, now)
    if job.predicted is not None and job.predicted.spread:
        done, outlived = _ran_and_outlived(job, ran)
        following = bisect_right(job.predicted.spread, outlived)
        if following < len(job.predicted.spread):
            return now + job.predicted.spread[following] - done
    left = expected_seconds(job, rules, ran)
    return now + left if left > 0.0 else None


def falls_of(job: Job, rules: OrderingRules) -> Iterator[float]:
    """All times at which the present attempt exceeds its expected run time, soonest first. They are fixed when the
    attempt starts. There are none for a job that has a time limit or has not started."""
    if job.time_left_seconds is not None or job.started_at is None:
        return
    begun, fallen = job.started_at, 0.0
    if job.predicted is not None:
        known = job.predicted.spread or (job.predicted.p50_seconds, job.predicted.p90_seconds)
        _, outlived = _ran_and_outlived(job, 0.0)
        for seconds in known:
            if seconds > outlived:
                outlived = fallen = seconds
                yield begun + seconds
    behind, assumed = job.attained_seconds + job.ran_seconds, rules.unknown_seconds
    while 0.0 < assumed < math.inf:
        if assumed - behind > fallen:
            yield begun + assumed - behind
        assumed *= 2


def gpus_asked(job: Job) -> float:
    """The GPUs that the job asks for. A job without GPUs counts as one GPU per node."""
    return job.request.total_gpu_milli / WHOLE if job.request.wants_gpu else float(job.request.nodes)


def aged_from(job: Job) -> float:
    """Since when the job waits, for its age: a preemption does not reset it."""
    since = job.queued_at if job.aged_from is None else job.aged_from
    return job.created_at if since is None else since


def expected_text(job: Job, rules: OrderingRules) -> str:
    """The expected run time and its source, as text. Names no users: the owners of similar runs may be hidden."""
    seconds = format_duration(max(1.0, expected_seconds(job, rules)))
    milli = job.request.total_gpu_milli
    size = f" of {gpus_text(milli)} {'GPU' if milli == WHOLE else 'GPUs'}" if milli else ""
    if job.predicted is not None:
        samples = job.predicted.samples
        runs = f"{samples} {'run' if samples == 1 else 'runs'} like it"
        half = format_duration(max(1.0, job.predicted.p50_seconds))
        if job.predicted.spread and job.time_left_seconds is None and half != seconds:
            return f"predicted {half}{size} from {runs}, and counted as {seconds}, as their run times differ"
        return f"predicted {seconds}{size} from {runs}"
    if job.time_left_seconds is not None:
        return f"at most {seconds}{size} by its time limit, as no runs like it are known"
    return f"assumed {seconds}{size}, as it has no time limit and no runs like it are known"
