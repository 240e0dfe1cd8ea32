"""`priority`: the smaller number first, then first come, first served."""

from __future__ import annotations

from corral.core.model import Job
from corral.core.scheduling.ordering.cost import OrderingRules, Rank


def own_key(job: Job, rules: OrderingRules) -> tuple[float | int, ...]:
    return (job.priority, job.created_at, job.serial)


def merge_key(job: Job, score: float, rules: OrderingRules) -> tuple[float | int, ...]:
    return own_key(job, rules)


def rank(job: Job, rules: OrderingRules, now: float) -> Rank:
    """Age does not interrupt anybody: within one priority nobody is far enough behind."""
    return Rank(float(job.priority))


def rank_text(job: Job, rules: OrderingRules, now: float) -> str:
    return f"priority {job.priority}"


def place_text(job: Job, score: float, rules: OrderingRules) -> str:
    return f"priority {job.priority}, then age"
