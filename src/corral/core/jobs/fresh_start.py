"""A job that a user starts, or starts again: how it is queued."""

from __future__ import annotations

from corral.core.copies import replace
from corral.core.model import EndReason, Job, JobState

#: A job that was stopped while it waited, and is started again within this time, keeps its place.
UNDO_SECONDS = 60.0
#: A user or an operator stopped the job: it is not started again by itself.
BY_PERSONS = frozenset({EndReason.STOPPED_BY_USER, EndReason.STOPPED_BY_OPERATOR})


def queued_afresh(job: Job, at: float) -> Job:
    """The job as it waits after a start by a user: nothing of earlier attempts counts."""
    since = _waited_since(job, at)
    return replace(
        job,
        state=JobState.QUEUED,
        queued_at=at if since is None else job.queued_at,
        aged_from=at if since is None else job.aged_from,
        attained_seconds=0.0,
        reached_seconds=0.0,
        preempted_for=None,
        preemptions=0,
        retries=0,
        faults=0,
        not_before=0.0,
        given_back=0,
        avoid_nodes=(),
        avoid_gpus=(),
        started_at=None,
        ended_at=None,
        resized_at=None,
        ceiling=None,
        end_reason=None,
        exit_code=None,
        message="",
    )


def _waited_since(job: Job, at: float) -> float | None:
    """The time when the job's wait began, if it was stopped a moment ago while it waited: then the start undoes the
    stop.
    """
    if job.ended_at is None or job.started_at is not None or job.end_reason not in BY_PERSONS:
        return None
    return job.queued_at if at - job.ended_at <= UNDO_SECONDS else None
