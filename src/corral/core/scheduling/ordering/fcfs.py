"""`fcfs`: first come, first served."""

from __future__ import annotations

from corral.core.model import Job
from corral.core.scheduling.ordering.cost import OrderingRules


def own_key(job: Job, rules: OrderingRules) -> tuple[float | int, ...]:
    return (job.created_at, job.serial)


def merge_key(job: Job, score: float, rules: OrderingRules) -> tuple[float | int, ...]:
    return own_key(job, rules)


def place_text(job: Job, score: float, rules: OrderingRules) -> str:
    return "by age"
