"""How long and how much: what orderings expect of a job that waits, and the numbers that an installation sets for it.

Nothing here depends on the present time: a line is kept sorted, so that the place of a job must follow from what is
known when it is queued. Waiting counts all the same: see `shortest` and `weighted`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.core.model import WHOLE, Job
from corral.core.quantities import format_duration
from corral.core.resources import gpus_text


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
    #: what a job is expected to run of which nothing is known and that has no time limit
    unknown_seconds: float = 86_400.0


def expected_seconds(job: Job, rules: OrderingRules) -> float:
    """How long it will run from its next start: as runs like it did, and never longer than it may."""
    most = job.time_left_seconds
    if job.predicted is None:
        return rules.unknown_seconds if most is None else most
    return job.predicted.p50_seconds if most is None else min(most, job.predicted.p50_seconds)


def gpus_asked(job: Job) -> float:
    """GPUs that it takes from others. One that takes none counts as one on each of its nodes, among its like."""
    return job.request.total_gpu_milli / WHOLE if job.request.wants_gpu else float(job.request.nodes)


def aged_from(job: Job) -> float:
    """Since when it waits for its end: being interrupted makes it no younger."""
    since = job.queued_at if job.aged_from is None else job.aged_from
    return job.created_at if since is None else since


def expected_words(job: Job, rules: OrderingRules) -> str:
    """What is expected of it, and where that is known from. Names nobody: whose runs those were may be hidden."""
    seconds = format_duration(max(1.0, expected_seconds(job, rules)))
    milli = job.request.total_gpu_milli
    size = f" of {gpus_text(milli)} {'GPU' if milli == WHOLE else 'GPUs'}" if milli else ""
    if job.predicted is not None:
        samples = job.predicted.samples
        return f"predicted {seconds}{size} from {samples} {'run' if samples == 1 else 'runs'} like it"
    if job.time_left_seconds is not None:
        return f"at most {seconds}{size} by its time limit, as no runs like it are known"
    return f"supposed {seconds}{size}, as it has no time limit and no runs like it are known"
