"""`fair-share`: the user with the lower score first; among one user's jobs the user's own order.

With equal scores the heads of the users' sequences are compared by priority and age.
"""

from __future__ import annotations

from corral.core.model import Job
from corral.core.scheduling.ordering.cost import OrderingRules


def own_key(job: Job, rules: OrderingRules) -> tuple[float | int, ...]:
    return (job.user_order, job.priority, job.created_at, job.serial)


def merge_key(job: Job, score: float, rules: OrderingRules) -> tuple[float | int, ...]:
    return (score, job.priority, job.created_at, job.serial)


def place_text(job: Job, score: float, rules: OrderingRules) -> str:
    moved = ", moved by its owner" if job.user_order else ""
    return f"score {score:.3g} of {job.user}{moved}, then priority {job.priority} and age"
