"""Dependencies between jobs: which jobs wait for a job, and what the end of that job means for them. Pure.

A dependency is met when its job has completed, and broken when the job has ended otherwise or was deleted. A requeued
job is neither. A job can only depend on older jobs, so that there are no cycles.
"""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import EndReason, Job, JobState

#: Only jobs in these states wait; an ended job keeps its dependencies for its next start.
WAITING = frozenset({JobState.CREATED, JobState.QUEUED})


class Dependents:
    """The jobs that wait for other jobs, by the id of the other job."""

    def __init__(self) -> None:
        self._of: dict[str, set[str]] = {}

    def of(self, job_id: str) -> list[str]:
        return sorted(self._of.get(job_id, ()), key=lambda other: (len(other), other))

    def follow(self, before: Job | None, after: Job | None) -> None:
        """Follows a job that was added (`before` is None), changed or removed (`after` is None)."""
        for job_id in _waits_for(before):
            self._of[job_id].discard(before.id if before else "")
            if not self._of[job_id]:
                del self._of[job_id]
        for job_id in _waits_for(after):
            self._of.setdefault(job_id, set()).add(after.id if after else "")


def _waits_for(job: Job | None) -> tuple[str, ...]:
    return job.after if job is not None and job.state in WAITING else ()


def met(job: Job, completed: str, at: float) -> Job:
    """The job after `completed` has completed. Its waiting time counts from when it could have started: otherwise a
    chain that is submitted early would pass all other jobs."""
    left = tuple(other for other in job.after if other != completed)
    can_start = job.state is JobState.QUEUED and not left
    return replace(job, after=left, queued_at=at if can_start else job.queued_at)


def broken_text(over: Job, *, is_gone: bool = False) -> str:
    """Why the dependencies on this job are broken: names the first job that failed, also through a chain of jobs."""
    if over.end_reason is EndReason.DEPENDENCY_FAILED and over.message:
        return over.message
    return f"{over.id} ({over.name}) {end_text(over, is_gone=is_gone)}"


def end_text(over: Job, *, is_gone: bool = False) -> str:
    """How a job that has not completed ended, such as "failed (exit code 3)"."""
    if is_gone and not over.state.is_ended:
        return "was deleted before it had run"
    verb = "failed" if over.state is JobState.FAILED else "was stopped"
    if over.end_reason is EndReason.EXIT_CODE and over.exit_code is not None:
        return f"{verb} (exit code {over.exit_code})"
    return f"{verb} ({over.end_reason})" if over.end_reason is not None else verb
