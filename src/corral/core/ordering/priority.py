"""`priority`: the smaller number first, then first come, first served."""

from __future__ import annotations

from corral.core.model import Job


def own_key(job: Job) -> tuple[float | int, ...]:
    return (job.priority, job.created_at, job.serial)


def merge_key(job: Job, score: float) -> tuple[float | int, ...]:
    return own_key(job)
