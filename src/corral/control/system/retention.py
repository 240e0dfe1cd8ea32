"""Retention of finished jobs and events. A job that is marked as kept is not deleted until the mark is removed.

The server finds the expired jobs (`server/retention`); this module deletes them in batches. Rows are deleted first,
together with a note of the directories to remove, so that a crash in between leaves no files behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from corral.control.jobs.jobs import own_job
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.ports import Transaction
from corral.control.records import KEPT_LABEL, JobRecord
from corral.core.model import Job, attempt_id

_FILES = "retention.files"
DAY = 86400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionRules:
    """None: without a limit."""

    job_seconds: float | None = 365 * DAY
    job_count: int | None = 1_000_000
    job_bytes: int | None = None
    event_seconds: float | None = 400 * DAY


def is_kept(record: JobRecord) -> bool:
    return KEPT_LABEL in record.spec.labels


def keep(work: Work, caller: Caller, ref: str) -> Job:
    """Marks a job as kept, so that retention does not delete it. A second call changes nothing."""
    return _set_kept(work, caller, ref, kept=True)


def stop_keeping(work: Work, caller: Caller, ref: str) -> Job:
    """Removes the mark: retention may delete the job when it expires."""
    return _set_kept(work, caller, ref, kept=False)


def drop(work: Work, job_ids: Sequence[str]) -> int:
    """Delete those of them that are still over and not kept; how many."""
    dropped: list[Job] = []
    for job_id in job_ids:
        record = work.tx.jobs.get(job_id)
        if record is not None and record.job.state.is_ended and not is_kept(record):
            work.jobs.delete(record.job, files_later=True)
            dropped.append(record.job)
    if dropped:
        files = {**files_to_remove(work.tx), **{job.id: job.attempt for job in dropped}}
        work.tx.meta.put(_FILES, json.dumps(files))
        detail = {"count": len(dropped), "jobs": [job.id for job in dropped]}
        work.record(SYSTEM, "jobs.expired", dropped[0].id, detail=detail)
    return len(dropped)


def files_to_remove(tx: Transaction) -> dict[str, int]:
    """Jobs whose rows are gone and whose files are not, with how many attempts they had."""
    found: dict[str, int] = json.loads(tx.meta.get(_FILES) or "{}")
    return found


def note_removed(work: Work, job_ids: Sequence[str]) -> None:
    """The files of these are gone."""
    left = {job_id: attempts for job_id, attempts in files_to_remove(work.tx).items() if job_id not in job_ids}
    work.tx.meta.put(_FILES, json.dumps(left))


def attempts_of(files: Mapping[str, int]) -> list[str]:
    return [attempt_id(job_id, number) for job_id, attempts in files.items() for number in range(1, attempts + 1)]


def prune_events(work: Work, before: float, limit: int) -> int:
    """Drop some of the oldest events that are older than this; how many."""
    return work.tx.events.prune(before, limit)


def _set_kept(work: Work, caller: Caller, ref: str, *, kept: bool) -> Job:
    job = own_job(work, caller, ref)
    spec = work.jobs.spec(job.id)
    if (KEPT_LABEL in spec.labels) == kept:
        return job
    labels = {key: value for key, value in spec.labels.items() if key != KEPT_LABEL}
    work.jobs.edit_spec(job, replace(spec, labels={**labels, KEPT_LABEL: caller.name} if kept else labels))
    work.record(caller, "job.kept" if kept else "job.let-go", job.id, owner=job.user)
    return job
