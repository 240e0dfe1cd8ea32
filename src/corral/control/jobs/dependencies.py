"""Dependencies of a job that is submitted, changed or started: which of the named jobs have not completed yet.

`work.jobs` releases or stops the dependents when a job ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from corral.control.errors import Invalid, Refusal, WrongState
from corral.control.jobs.job_references import array_jobs, job_of_reference
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.permissions import may_see_job
from corral.core.jobs.arrays import MAX_ARRAY_SIZE
from corral.core.jobs.dependencies import end_text
from corral.core.model import Job, JobState


def resolved(work: Work, caller: Caller, refs: Sequence[str], of: Job | None = None) -> tuple[str, ...]:
    """The ids behind what was named, without those that have completed; refused if one can never complete.

    `of` is the job that shall wait, if it exists already: it can only come after older ones.
    """
    wanted = {job.id: job for ref in refs for job in _meant(work, caller, ref)}
    if len(wanted) > MAX_ARRAY_SIZE:
        raise Invalid(
            f"a job comes after {MAX_ARRAY_SIZE} others at most", field="after", asked=len(wanted), limit=MAX_ARRAY_SIZE
        )
    younger = [job.id for job in wanted.values() if of is not None and job.serial >= of.serial]
    if of is not None and younger:
        raise Invalid(f"{of.id} can only come after older jobs, not after {younger[0]}", field="after")
    return _open(wanted.values())


def still_open(work: Work, job: Job) -> tuple[str, ...]:
    """The dependencies of the job that have not been met yet."""
    found = []
    for job_id in job.after:
        other = work.jobs.get(job_id)
        if other is None:
            raise WrongState(
                f"it comes after {job_id}, which was deleted: `corral clone {job.id} --after none` makes a new one",
                field="after",
            )
        found.append(other)
    return _open(found)


def _meant(work: Work, caller: Caller, ref: str) -> list[Job]:
    job = job_of_reference(work, caller, ref)
    if job is not None and may_see_job(caller, job.user):
        return [job]
    members = array_jobs(work, caller.name, ref)
    if not members:
        raise Invalid(f"there is no job {ref!r} to come after", field="after")
    return members


def _open(jobs: Iterable[Job]) -> tuple[str, ...]:
    for job in jobs:
        if job.state.is_ended and job.state is not JobState.COMPLETED:
            raise _in_vain(job)
    return tuple(job.id for job in jobs if not job.state.is_ended)


def _in_vain(job: Job) -> Refusal:
    return WrongState(
        f"{job.id} ({job.name}) {end_text(job)}: what comes after it would never start; start that one again first",
        field="after",
        state=job.state,
    )
