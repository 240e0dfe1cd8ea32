"""`weighted`: priority, size, expected run time and age, each with a weight; the smallest sum first.

The parts are the priority, log2(1 + GPUs), log2(1 + minutes of run time) and, less, the hours of waiting. All jobs age
alike, so that the time at which a job was queued can stand for its waiting (see `shortest`).

Nobody starves: no part of the sum but age is negative. Divide the rest of a job's sum by the weight of age: what is
queued more hours later than that never stands before it.
"""

from __future__ import annotations

import math

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
    return (cost(job, rules) + rules.weights.age * aged_from(job) / 3600, job.created_at, job.serial)


def merge_key(job: Job, score: float, rules: OrderingRules) -> tuple[float | int, ...]:
    return own_key(job, rules)


def cost(job: Job, rules: OrderingRules) -> float:
    """Everything that counts against it but its age."""
    return sum(part for _, part in _parts(job, rules))


def rank(job: Job, rules: OrderingRules, now: float) -> Rank:
    """As it is ordered, with what is left of its run time."""
    left = sum(part for _, part in _parts(job, rules, ran_seconds(job, now)))
    return Rank(left + rules.weights.age * aged_from(job) / 3600, left)


def rank_text(job: Job, rules: OrderingRules, now: float) -> str:
    age = max(0.0, now - aged_from(job)) / 3600
    return f"a sum of {rank(job, rules, now).cost:.3g}, less {rules.weights.age * age:.3g} for its age"


def bound_seconds(job: Job, rules: OrderingRules) -> float:
    """What is queued later than so long after this job never stands before it."""
    return cost(job, rules) / rules.weights.age * 3600


def place_text(job: Job, score: float, rules: OrderingRules) -> str:
    parts = " + ".join(f"{name} {part:.3g}" for name, part in _parts(job, rules))
    bound = format_duration(max(1.0, bound_seconds(job, rules)))
    return (
        f"{parts}, less {rules.weights.age:g} for each hour of waiting ({expected_text(job, rules)}); "
        f"nothing queued over {bound} after it goes before it"
    )


def _parts(job: Job, rules: OrderingRules, ran: float = 0.0) -> tuple[tuple[str, float], ...]:
    weights = rules.weights
    return (
        ("priority", weights.priority * job.priority),
        ("size", weights.size * math.log2(1 + gpus_asked(job))),
        ("run time", weights.runtime * math.log2(1 + expected_seconds(job, rules, ran) / 60)),
    )
