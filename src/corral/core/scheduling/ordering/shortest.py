"""`shortest`: the least expected GPU-time first, reduced by the waiting time.

A job with cost `c` that has waited for `w` seconds is ordered by `c - ageing × w`. All jobs age alike, so that the
order of two jobs never changes while both wait, and the key `c + ageing × (when it was queued)` gives the same order
without the present time.

No job starves: of two jobs the later one goes first only if it was queued less than `c / ageing` seconds after the
other, where `c` is the cost of the other. A job that is queued later than that goes behind it, however short it is.
"""

from __future__ import annotations

from corral.core.model import Job
from corral.core.quantities import format_duration
from corral.core.scheduling.ordering.cost import (
    OrderingRules,
    Rank,
    aged_from,
    expected_seconds,
    expected_text,
    gpus_asked,
    ran_seconds,
)


def own_key(job: Job, rules: OrderingRules) -> tuple[float | int, ...]:
    return (cost(job, rules) + rules.ageing * aged_from(job), job.created_at, job.serial)


def merge_key(job: Job, score: float, rules: OrderingRules) -> tuple[float | int, ...]:
    return own_key(job, rules)


def cost(job: Job, rules: OrderingRules) -> float:
    """The expected GPU-seconds from now on; `size_power` makes large jobs count less or more."""
    return _size(job, rules) * expected_seconds(job, rules)


def rank(job: Job, rules: OrderingRules, now: float) -> Rank:
    """Ranks by the remaining cost: a running job only becomes more urgent."""
    left = _size(job, rules) * expected_seconds(job, rules, ran_seconds(job, now))
    lead = 0.0 if job.time_limit_seconds is not None else rules.unknown_margin * left
    return Rank(left + rules.ageing * aged_from(job), left, lead)


def rank_text(job: Job, rules: OrderingRules, now: float) -> str:
    left, age = rank(job, rules, now).cost / 3600, max(0.0, now - aged_from(job)) / 3600
    return f"{left:.3g} GPU-hours left, less {rules.ageing * age:.3g} for its age"


def bound_seconds(job: Job, rules: OrderingRules) -> float:
    """Jobs that are queued later than this after the job never go before it."""
    return cost(job, rules) / rules.ageing


def place_text(job: Job, score: float, rules: OrderingRules) -> str:
    bound = format_duration(max(1.0, bound_seconds(job, rules)))
    return f"{expected_text(job, rules)}; nothing queued over {bound} after it goes before it"


def _size(job: Job, rules: OrderingRules) -> float:
    gpus = gpus_asked(job)
    return gpus if rules.size_power == 1.0 else gpus**rules.size_power
