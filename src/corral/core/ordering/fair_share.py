"""`fair-share`: the user with the lower score first; among one user's jobs the user's own order.

With equal scores the heads of the users' sequences are compared by priority and age.
"""

from __future__ import annotations

from corral.core.model import Job


def own_key(job: Job) -> tuple[float | int, ...]:
    return (job.user_order, job.priority, job.created_at, job.serial)


def merge_key(job: Job, score: float) -> tuple[float | int, ...]:
    return (score, job.priority, job.created_at, job.serial)
