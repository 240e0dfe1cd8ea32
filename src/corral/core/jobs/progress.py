"""The progress of a job over its attempts: its run time, the saved part of it, and the most work done. Pure."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import EndReason, Job


def with_run_counted(job: Job, at: float) -> Job:
    """The job after an attempt has ended; the next attempt starts from the last checkpoint."""
    return replace(
        job,
        saved_seconds=saved(job),
        attained_seconds=job.attained_seconds + ran_until(job, at),
        reached_seconds=reached_until(job, at),
    )


def reached_until(job: Job, at: float) -> float:
    """The most work done until then. After a stop request nothing is added: saving and waiting for the end is no work.
    A resize is the exception, because the run continues."""
    if job.stopping_for not in (None, EndReason.RESIZED):
        return job.reached_seconds
    return max(job.reached_seconds, job.saved_seconds + ran_until(job, at))


def ran_until(job: Job, at: float) -> float:
    return job.ran_seconds + (0.0 if job.started_at is None else max(0.0, at - job.started_at))


def saved(job: Job) -> float:
    """Run time that the next attempt need not repeat: up to the last checkpoint."""
    if job.checkpointed_at is None:
        return 0.0
    before = job.saved_seconds + job.ran_seconds
    return before if job.started_at is None else before + max(0.0, job.checkpointed_at - job.started_at)


def saved_before(job: Job, attempt_began: float, at: float) -> float:
    """Like `saved`, for a queued job whose ended attempt is found to have saved at that time. Many programs save only
    when they are warned, so that their last checkpoint is found after the end."""
    known = attempt_began if job.checkpointed_at is None else max(attempt_began, job.checkpointed_at)
    return job.saved_seconds + max(0.0, at - known)
