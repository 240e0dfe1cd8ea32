"""References to jobs in requests: an id, or the name of a job, a task or an array of the caller; and the names of new
jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from corral.control.errors import Taken, about_item
from corral.control.jobs.admission import GIVEN_NAME
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Transaction
from corral.control.records import JobFilter, JobRecord, JobSpec
from corral.core.jobs.arrays import array_job_name
from corral.core.model import Job, JobKind
from corral.core.names import JOB_NAME

_PAGE = 500
_TRIED_NAMES = 1000


def named_jobs(work: Work, user: str, jobs: Sequence[Job], specs: Sequence[JobSpec]) -> list[Job]:
    """The new jobs with names that no other job of the user has. A name that belongs to an ended job gets a number;
    a name that belongs to a live job is refused, as are names of arrays and workbenches, which refer to their files."""
    taken = work.tx.jobs.names_taken(user, [job.name for job in jobs if job.name])
    named: list[Job] = []
    seen: set[str] = set()
    for number, (job, spec) in enumerate(zip(jobs, specs, strict=True)):
        name = job.name
        may_change = job.kind is not JobKind.WORKBENCH and spec.array_index is None
        if name in taken and may_change and _is_over(work, user, name):
            name = free_name(work, user, name, beside=seen) or name
        if name and (name in seen or (name in taken and name == job.name) or work.jobs.is_new_name(user, name)):
            with about_item(number):
                raise Taken(
                    f"you have a job named {name!r} already: choose another name or remove it", field="name", name=name
                )
        seen.add(name)
        named.append(job if name == job.name else replace(job, name=name))
    return named


def free_name(work: Work, user: str, name: str, *, beside: set[str] | frozenset[str] = frozenset()) -> str | None:
    """NAME-2, NAME-3 and so on; None for a name that the server gave, and if no number is free."""
    if GIVEN_NAME.fullmatch(name):
        return None
    names = [found for number in range(2, _TRIED_NAMES) if JOB_NAME.fullmatch(found := f"{name}-{number}")]
    taken = work.tx.jobs.names_taken(user, names) | beside
    return next((found for found in names if found not in taken and not work.jobs.is_new_name(user, found)), None)


def _is_over(work: Work, user: str, name: str) -> bool:
    return all((work.jobs.get(found.job.id) or found.job).state.is_ended for found in work.tx.jobs.find(user, name))


def job_of_reference(work: Work, caller: Caller, ref: str) -> Job | None:
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
