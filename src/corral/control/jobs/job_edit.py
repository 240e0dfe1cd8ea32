"""Changing a job that waits: where, how soon, how long, after what, and, until it starts for the first time, how large.

What comes of a change is worked out without touching anything, so that advice can be tried before somebody takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from corral.control.errors import Invalid, WrongState
from corral.control.fleet.catalog import Catalog, load_catalog
from corral.control.jobs.admission import check_fleet, check_queue_lengths, check_queue_rules, check_quota, settled
from corral.control.jobs.dependencies import resolved
from corral.control.jobs.job_clone import CloneChange, merged
from corral.control.jobs.jobs import JobDraft, check_nodes, elastic_of, kind_of, own_job, request_for, with_pick
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.permissions import function_for, require
from corral.control.records import TASK_LABEL, JobSpec
from corral.control.storage.mounts import in_cluster, local_bytes_of
from corral.core.fleet.resources import asked_by
from corral.core.model import CLUSTER_LABEL, Job, JobState
from corral.core.snapshot.changes import DropJob, PutJob
from corral.core.snapshot.waiting_lines import line_of

#: What says how large a job is.
SIZE_WORDS = frozenset({"gpus", "nodes", "cpus", "memory", "model", "flavor", "package", "min_gpus", "max_gpus"})
NO_CATALOG = Catalog(flavors={}, packages={})


@dataclass(frozen=True, kw_only=True, slots=True)
class JobChange:
    """What is to be different about a job; a field that is not in `given` stays as it is."""

    given: frozenset[str]
    #: None means: the right one
    queue: str | None = None
    priority: int | None = None
    #: None means: as long as the queue allows
    time_limit_seconds: float | None = None
    #: None means: as jobs of its kind usually are
    preemptible: bool | None = None
    #: as in a draft
    after: tuple[str, ...] = ()
    #: the values of those of `SIZE_WORDS` that are given
    size: JobDraft = field(default_factory=lambda: JobDraft(spec=JobSpec(command=())))

    @property
    def is_about_size(self) -> bool:
        return bool(self.given & SIZE_WORDS)

    @property
    def needs_catalog(self) -> bool:
        return self.size.flavor is not None or self.size.package is not None


def edit(work: Work, caller: Caller, ref: str, change: JobChange) -> Job:
    """Change a job that does not run yet. It keeps its age."""
    job = own_job(work, caller, ref)
    if job.state not in (JobState.QUEUED, JobState.CREATED):
        raise WrongState(f"job {job.id} is {job.state}: only a job that waits can be changed", state=job.state)
    catalog = load_catalog(work.tx) if change.needs_catalog else NO_CATALOG
    before = work.spec(job.id)
    after, spec = edited(work.state, job, before, change, catalog)
    if after.kind is not job.kind:
        require(caller, function_for(after.kind, spec))
    if "after" in change.given:
        after = _coming_after(work, caller, after, change.after)
    if after == job and spec == before:
        return job
    work.record(caller, "job.edited", job.id, owner=job.user, detail=_differences(job, after))
    if spec != before:
        work.edit_spec(job, spec)
    return work.edit(job, after)


def edited(state: State, job: Job, spec: JobSpec, change: JobChange, catalog: Catalog) -> tuple[Job, JobSpec]:
    """The job as the change would make it, and what it runs; refused if it could not wait like that. Nothing is
    changed, and what it comes after is not looked at."""
    after = job
    if "priority" in change.given and change.priority is not None:
        after = replace(after, priority=change.priority)
    if "preemptible" in change.given:
        after = _giving_way(after, change.preemptible)
    if change.is_about_size:
        after, spec = _reshaped(state, after, spec, change, catalog)
    if change.is_about_size or change.given & {"queue", "time"}:
        if "queue" in change.given:
            after = replace(after, queue=change.queue or "")
        if "time" in change.given:
            after = replace(after, time_limit_seconds=change.time_limit_seconds)
        after = settled(state, after)
        _check(state, job, after)
    if line_of(after) != line_of(job):
        # A pin and an own order are places in the line that it leaves.
        after = replace(after, pinned_at=None, user_order=0)
    return after, spec


@contextmanager
def left_out(state: State, job: Job) -> Iterator[None]:
    """The picture without a job that waits, for as long as the block lasts."""
    is_there = job.id in state.snapshot.jobs
    if is_there:
        state.snapshot.apply([DropJob(id=job.id)])
    try:
        yield
    finally:
        if is_there:
            state.snapshot.apply([PutJob(job=job)])


def _reshaped(state: State, job: Job, spec: JobSpec, change: JobChange, catalog: Catalog) -> tuple[Job, JobSpec]:
    if job.attempt:
        raise WrongState(
            f"{job.id} has started before: its size stays; clone it to run it with another one", state=job.state
        )
    if TASK_LABEL in spec.labels:
        raise Invalid(f"{job.id} holds GPUs for a task: release it, and allocate anew", field="job")
    given = change.given & SIZE_WORDS
    draft = merged(job, spec, CloneChange(given=given, draft=change.size))
    if draft.flavor is not None or draft.package is not None:
        draft = with_pick(catalog, draft)
    kind = kind_of(draft)
    check_nodes(draft.request, kind)
    elastic = elastic_of(state, draft, kind)
    # Its mounts stay, and so does the cluster that they are in.
    request = in_cluster(request_for(draft.request, elastic), dict(job.request.labels).get(CLUSTER_LABEL))
    local_bytes = local_bytes_of(spec.mounts, request.nodes)
    return replace(job, kind=kind, request=request, elastic=elastic, local_bytes=local_bytes), draft.spec


def _giving_way(job: Job, preemptible: bool | None) -> Job:
    """It counts from the first start on: whoever took what others are owed cannot refuse to give it back."""
    wanted = job.kind.is_preemptible if preemptible is None else preemptible
    if job.attempt and wanted != job.preemptible:
        raise WrongState(f"{job.id} has started before: whether it may be preempted stays", state=job.state)
    return replace(job, preemptible=wanted)


def _check(state: State, job: Job, after: Job) -> None:
    """What a new job is checked for, as far as the change matters: what is as it was is nobody's business now."""
    check_queue_rules(state, after)
    check_fleet(state, [after])
    if job.state is not JobState.QUEUED:
        return
    if after.queue != job.queue:
        check_queue_lengths(state, [after])
    asked, had = asked_by(after.request), asked_by(job.request)
    is_more = (
        asked.gpu_milli > had.gpu_milli or asked.cpu_milli > had.cpu_milli or asked.memory_bytes > had.memory_bytes
    )
    if is_more or after.kind is not job.kind:
        with left_out(state, job):
            check_quota(state, [after])


def _coming_after(work: Work, caller: Caller, job: Job, refs: tuple[str, ...]) -> Job:
    after = resolved(work, caller, refs, of=job)
    # One that nothing holds any more enters its line now, and its age there counts from now.
    is_free = bool(job.after) and not after and job.state is JobState.QUEUED
    return replace(job, after=after, queued_at=work.now if is_free else job.queued_at)


def _differences(before: Job, after: Job) -> dict[str, Any]:
    """For the audit log: what a field was, and what it is."""
    was, now = _facts(before), _facts(after)
    return {field: {"was": was[field], "is": now[field]} for field in was if was[field] != now[field]}


def _facts(job: Job) -> dict[str, Any]:
    request, elastic = job.request, job.elastic
    return {
        "queue": job.queue,
        "priority": job.priority,
        "preemptible": job.preemptible,
        "time_limit_seconds": job.time_limit_seconds,
        "after": job.after,
        "kind": job.kind,
        "nodes": request.nodes,
        "gpus": request.gpus or request.gpu_milli / 1000,
        "cpus": request.cpu_milli / 1000,
        "memory_bytes": request.memory_bytes,
        "models": request.models,
        "labels": dict(request.labels),
        "elastic": None if elastic is None else [elastic.min_gpus, elastic.max_gpus],
    }
