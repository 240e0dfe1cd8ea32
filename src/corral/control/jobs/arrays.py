"""Arrays: one submission that makes many jobs alike, each with its index, and what is done to all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.errors import Invalid, NotFound, Taken, WrongState
from corral.control.jobs import jobs
from corral.control.jobs.job_references import array_jobs, job_of_reference
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import JobRecord
from corral.core.copies import replace
from corral.core.jobs.arrays import array_job_name


def submit_array(work: Work, caller: Caller, draft: jobs.JobDraft, indexes: Sequence[int]) -> list[JobRecord]:
    """One job for every index, all of them or none."""
    return _submit(work, caller, draft, [_member(draft, index, len(indexes)) for index in indexes])


def _submit(work: Work, caller: Caller, draft: jobs.JobDraft, members: Sequence[jobs.JobDraft]) -> list[JobRecord]:
    if draft.name is None:
        raise Invalid("an array needs a name: its jobs are called NAME-0, NAME-1 and so on", field="name")
    if job_of_reference(work, caller, draft.name) is not None:
        raise Taken(
            f"you have a job named {draft.name!r}: choose another name for the array", field="name", name=draft.name
        )
    return jobs.submit(work, caller, list(members))


def submit_packed(work: Work, caller: Caller, draft: jobs.JobDraft, packs: Sequence[Sequence[int]]) -> list[JobRecord]:
    """One job for each of the packs, which runs its items one after another: all of them or none."""
    if draft.request.nodes > 1:
        raise Invalid("the items of a packed array run on one node: leave nodes out", field="nodes")
    size = sum(len(items) for items in packs)
    return _submit(work, caller, draft, [_pack(draft, number, items, size) for number, items in enumerate(packs, 1)])


def stop_array(work: Work, caller: Caller, array: str, user: str | None = None) -> list[JobRecord]:
    """End all jobs of an array in one step, so that none of them starts because another one stops."""
    owner = caller.name if user is None else user
    members = array_jobs(work, owner, array) if owner == caller.name or caller.is_operator else []
    if not members:
        raise NotFound(f"there is no array {array!r}", field="array")
    alive = [job for job in members if not job.state.is_ended]
    if not alive:
        raise WrongState(f"every job of array {array!r} ({len(members)}) has ended already")
    stopped = []
    for job in alive:
        # The end of one may just have ended others that were to come after it.
        present = work.jobs.get(job.id)
        if present is not None and not present.state.is_ended:
            present = jobs.stop(work, caller, job.id)
        if present is not None:
            stopped.append(JobRecord(job=present, spec=work.jobs.spec(job.id)))
    return stopped


def _member(draft: jobs.JobDraft, index: int, size: int) -> jobs.JobDraft:
    array = draft.name or ""
    spec = replace(draft.spec, array_index=index, array_name=array, array_size=size)
    return replace(draft, name=array_job_name(array, index), spec=spec)


def _pack(draft: jobs.JobDraft, number: int, items: Sequence[int], size: int) -> jobs.JobDraft:
    member = _member(draft, number, size)
    return replace(member, spec=replace(member.spec, items=tuple(items)))
