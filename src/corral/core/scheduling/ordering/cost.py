"""How long and how much: what orderings expect of a job, and the numbers that an installation sets for it.

The place of a job that waits does not depend on the present time: a line is kept sorted, so that it must follow from
what is known when the job is queued. Waiting counts all the same: see `shortest` and `weighted`. The rank of a job that
runs does: with every second less is left of it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Job, Prediction
from corral.core.quantities import format_duration


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """What counts how much under `weighted`. None is negative, and age counts always: so nobody starves."""

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
    """Settings of the whole installation for the orderings that look at run times."""

    weights: Weights = field(default_factory=Weights)
    #: under `shortest`: GPU-hours of work that an hour of waiting makes up for
    ageing: float = 4.0
    #: under `shortest` a job costs its run time × GPUs to this power: 1 is GPU-time, 0 run time alone. Below 1 large
    #: jobs wait less, above 1 small ones.
    size_power: float = 1.0
    #: what a job is expected to run of which nothing is known and that has no time limit
    unknown_seconds: float = 86_400.0


class Rank(NamedTuple):
    """Where a job stands among those that wait and those that run, in queues whose order preempts; smaller is first."""

    place: float
    #: what is left of it, in the measure of the place: a margin is a part of this
    cost: float = 0.0


def expected_seconds(job: Job, rules: OrderingRules, ran_seconds: float = 0.0) -> float:
    """How long it will run from its next start, or from now on if it has run for some time already: as half of the runs
    like it did, and never longer than it may.

    Where it may run on and the spread of such runs is known, it counts what they cost each that ends (`worth_seconds`).
    One that outlives them all, or the nine tenths where no more is known, nobody knows anything about, and what it has
    run so far says how long it takes: as long as is supposed of such jobs, twice as long once it has outlived that, and
    so on. So it falls behind fresh ones, and each time for longer.
    """
    most = job.time_left_seconds
    if most is not None:
        known = most if job.predicted is None else min(most, job.predicted.p50_seconds)
        return max(0.0, known - ran_seconds)
    # Attempts that were lost count: else being interrupted would make it more urgent, and it interrupt in turn. But all
    # that they say is that it takes longer than the longest of them: what they had done is to be done again.
    if job.predicted is not None:
        left = _left_of(job.predicted, *_ran_and_outlived(job, ran_seconds))
        if left is not None:
            return left
    behind, supposed = job.attained_seconds + job.ran_seconds + ran_seconds, rules.unknown_seconds
    while 0.0 < supposed <= behind:
        supposed *= 2
    return max(0.0, supposed - behind)


def _ran_and_outlived(job: Job, ran_seconds: float) -> tuple[float, float]:
    """What was done and what was ever done of that which is predicted: of all that comes after what is saved. Both are
    taken from the whole work, so that rounding never tells them apart where nothing was lost."""
    done = job.saved_seconds + ran_seconds
    return done - job.saved_seconds, max(job.reached_seconds, done) - job.saved_seconds


def _left_of(predicted: Prediction, ran: float, outlived: float) -> float | None:
    """What is left of a job that has run so long of it, and once perhaps longer; nothing if it has outlived all that is
    known."""
    if predicted.spread:
        return worth_seconds(predicted.spread, ran, outlived)
    for supposed in (predicted.p50_seconds, predicted.p90_seconds):
        if outlived < supposed:
            return supposed - ran
    return None


def worth_seconds(spread: Sequence[float], ran: float, outlived: float = 0.0) -> float | None:
    """The least run time per job that ends, of all ways to go on: to run those that are left of so many alike jobs for
    some time, and to give up those that are not done by then. Ordered by this, and by nothing else that is known, jobs
    of which only the spread of their run times is known end soonest on average (the index of Gittins).

    It is short where many end soon, and grows while a job proves to be one of the long ones. One whose attempt was lost
    begins anew, and is known to be none of those that it had outlived.
    """
    first = bisect_right(spread, max(ran, outlived))
    count = len(spread) - first
    if not count:
        return None
    best, ended_seconds = math.inf, 0.0
    for ended in range(1, count + 1):
        until = spread[first + ended - 1] - ran
        ended_seconds += until
        best = min(best, (ended_seconds + (count - ended) * until) / ended)
    return best


def ran_seconds(job: Job, now: float) -> float:
    """How long the present attempt has run."""
    return 0.0 if job.started_at is None or not job.state.holds_resources else max(0.0, now - job.started_at)


def falls_behind_at(job: Job, rules: OrderingRules, now: float) -> float | None:
    """When a running job outlives what is expected of it, and more is expected; never if it may not run as long."""
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


def gpus_asked(job: Job) -> float:
    """GPUs that it takes from others. One that takes none counts as one on each of its nodes, among its like."""
    return job.request.total_gpu_milli / WHOLE if job.request.wants_gpu else float(job.request.nodes)


def aged_from(job: Job) -> float:
    """Since when it waits for its end: being interrupted makes it no younger."""
    since = job.queued_at if job.aged_from is None else job.aged_from
    return job.created_at if since is None else since


def expected_text(job: Job, rules: OrderingRules) -> str:
    """What is expected of it, and where that is known from. Names nobody: whose runs those were may be hidden."""
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
    return f"supposed {seconds}{size}, as it has no time limit and no runs like it are known"
