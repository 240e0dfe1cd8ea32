"""A store that is older than the running attempts: a restored backup, or a store that another home has taken over.

The store decides what runs. But no job may run twice meanwhile, and no id may be used again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from corral.control.live.unit_of_work import SYSTEM, Work
from corral.core.jobs.lifecycle import Stop
from corral.core.model import Job, JobState, job_of_attempt

log = logging.getLogger("corral.control")

#: How long a job waits at least for the end of an attempt that it does not hold; longer than it takes to look again.
HOLD_SECONDS = 20.0
#: In `meta`: when the store was restored from a backup, in seconds since 1970.
RESTORED_AT = "restored.at"


def skip_used_ids(work: Work, highest_job: int) -> None:
    """Jobs up to this number have directories: a new job must not find those of another."""
    skipped = work.tx.jobs.skip_ids(highest_job)
    if skipped:
        log.warning("%d ids of jobs are skipped: the store is older than the directories beside it", skipped)
        work.record(SYSTEM, "store.older", f"j-{highest_job}", detail={"skipped_jobs": skipped})


def is_from_backup(work: Work, job: Job) -> bool:
    """Whether the present attempt was planned before the store was restored from a backup: it may have been launched
    after that backup, by the server of that time."""
    restored_at = work.tx.meta.get(RESTORED_AT)
    return restored_at is not None and (job.allocated_at or 0.0) <= float(restored_at)


def jobs_with_later_attempts(work: Work, unheld: Iterable[str]) -> set[str]:
    """The jobs whose later attempt runs although they hold an earlier one; `unheld` are running attempts that no job
    holds.
    """
    found = set()
    for attempt_id in unheld:
        job_id, number = _parts(attempt_id)
        job = work.state.snapshot.jobs.get(job_id)
        if job is not None and job.attempt < number:
            found.add(job_id)
    return found


def end_unheld(work: Work, attempt_id: str, cluster: str) -> None:
    """End an attempt that runs although no job holds it. A job that waits starts again only when it is gone."""
    log.warning("attempt %s runs in %s, and no job holds it: stopping it", attempt_id, cluster)
    job_id, number = _parts(attempt_id)
    job = work.state.snapshot.jobs.get(job_id)
    grace_seconds = 0.0
    if job is not None and job.state is JobState.QUEUED:
        # Its program may save, so that the next attempt goes on from there.
        grace_seconds = job.grace_seconds
        held = replace(
            job,
            attempt=max(job.attempt, number),
            not_before=max(job.not_before, work.now + HOLD_SECONDS),
            message=f"attempt {attempt_id} still runs, of which the store does not know: it is ended first",
        )
        work.jobs.edit(job, held)
    work.effects.instructions.append(Stop(attempt_id=attempt_id, grace_seconds=grace_seconds, cluster=cluster))


def _parts(attempt_id: str) -> tuple[str, int]:
    try:
        return job_of_attempt(attempt_id)
    except ValueError:
        return attempt_id, 0
