"""Jobs that come after others: who waits for whom, and what the end of one means for the rest. Pure.

A dependency is met when its job has completed, and broken when it has ended otherwise or is gone. One that goes back to
its queue is neither. A job can only come after older ones, so that nothing can ever wait for itself.
"""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import EndReason, Job, JobState

#: Only these wait; what an ended job once waited for is kept for its next start.
WAITING = frozenset({JobState.CREATED, JobState.QUEUED})


class Dependents:
    """Of every job that others wait for, those others."""

    def __init__(self) -> None:
        self._of: dict[str, set[str]] = {}

    def of(self, job_id: str) -> list[str]:
        return sorted(self._of.get(job_id, ()), key=lambda other: (len(other), other))

    def follow(self, before: Job | None, after: Job | None) -> None:
        """A job came, changed or went."""
        for job_id in _waits_for(before):
            self._of[job_id].discard(before.id if before else "")
            if not self._of[job_id]:
                del self._of[job_id]
        for job_id in _waits_for(after):
            self._of.setdefault(job_id, set()).add(after.id if after else "")


def _waits_for(job: Job | None) -> tuple[str, ...]:
    return job.after if job is not None and job.state in WAITING else ()


def met(job: Job, completed: str, at: float) -> Job:
    """The job, once that one has completed. It grows old in its line only from when it could have started: else a chain
    that is submitted early would pass everybody."""
    left = tuple(other for other in job.after if other != completed)
    can_start = job.state is JobState.QUEUED and not left
    return replace(job, after=left, queued_at=at if can_start else job.queued_at)


def broken_text(over: Job, *, is_gone: bool = False) -> str:
    """Why those who wait for this job wait in vain: the first one that failed, also behind others that waited too."""
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
