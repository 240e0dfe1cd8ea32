"""References to jobs in requests: an id, or the name of a job, a task or an array of the caller."""

from __future__ import annotations

from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Transaction
from corral.control.records import JobFilter, JobRecord, JobSpec
from corral.core.jobs.arrays import array_job_name
from corral.core.model import Job

_PAGE = 500


def job_behind(work: Work, caller: Caller, ref: str) -> Job | None:
    """The job with this id, or the caller's own with this name. Whether the caller may know of it is not asked here."""
    job = work.jobs.get(ref) if ref.startswith("j-") else None
    if job is None:
        found = record_named(work.tx, caller.name, ref)
        # The snapshot may be ahead of what was read.
        job = work.jobs.get(found.job.id) if found else None
    return job


def record_named(tables: Transaction, user: str, name: str) -> JobRecord | None:
    """The user's job of this name, or else the user's task of this name."""
    found = tables.jobs.find(user, name)
    return found[0] if found else tables.jobs.find_task(user, name)


def array_jobs(work: Work, user: str, array: str) -> list[Job]:
    """The jobs of a user's array that are still there, in the order of their indexes."""
    where = JobFilter(user=user, name_contains=f"{array}-")
    found: list[JobRecord] = []
    cursor: str | None = None
    while True:
        page = work.tx.jobs.page(where, sort="id", cursor=cursor, limit=_PAGE)
        found += [record for record in page.items if is_of_array(record, array)]
        cursor = page.next_cursor
        if cursor is None:
            break
    found.sort(key=lambda record: record.spec.array_index or 0)
    return [work.jobs.get(record.job.id) or record.job for record in found]


def is_of_array(record: JobRecord, array: str) -> bool:
    """A clone of an array's job has its index, but not its name, and is none of the array."""
    return record.spec.array_name == array and record.job.name == _name(record.spec)


def _name(spec: JobSpec) -> str | None:
    return None if spec.array_index is None else array_job_name(spec.array_name, spec.array_index)
