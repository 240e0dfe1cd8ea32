"""How far a job's attempts have come: what it ran, what of that is saved, and how far it got. Pure."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import EndReason, Job


def with_run_counted(job: Job, at: float) -> Job:
    """Its attempt is over, and the next one begins with what is saved."""
    return replace(
        job,
        saved_seconds=saved(job),
        attained_seconds=job.attained_seconds + ran_until(job, at),
        reached_seconds=reached_until(job, at),
    )


def reached_until(job: Job, at: float) -> float:
    """Saving and waiting for the end is no work: since it was told to stop nothing is added. But a resize lets it go
    on."""
    if job.stopping_for not in (None, EndReason.RESIZED):
        return job.reached_seconds
    return max(job.reached_seconds, job.saved_seconds + ran_until(job, at))


def ran_until(job: Job, at: float) -> float:
    return job.ran_seconds + (0.0 if job.started_at is None else max(0.0, at - job.started_at))


def saved(job: Job) -> float:
    """Run time that the next attempt need not do again: all of it up to the last checkpoint."""
    if job.checkpointed_at is None:
        return 0.0
    before = job.saved_seconds + job.ran_seconds
    return before if job.started_at is None else before + max(0.0, job.checkpointed_at - job.started_at)
