"""Changing a job that waits: where, how soon, how long, after what, and, until it starts for the first time, how large.

The result of a change is computed without changing anything, so that suggestions can be tried before a user takes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from corral.control.errors import Invalid, WrongState
from corral.control.fleet.catalog import Catalog, load_catalog
from corral.control.jobs.admission import check_fleet, check_queue_lengths, check_queue_rules, check_quota, settled
from corral.control.jobs.dependencies import resolved
from corral.control.jobs.job_clone import merged
from corral.control.jobs.jobs import (
    JobChange,
    JobDraft,
    check_nodes,
    elastic_of,
    kind_of,
    own_job,
    request_for,
    with_pick,
)
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.permissions import function_for, require
from corral.control.records import JobRecord, JobSpec
from corral.control.storage.mounts import in_cluster, local_bytes_of
from corral.core.fleet.resources import asked_by
from corral.core.jobs.field_types import Edit, JobField
from corral.core.jobs.job_fields import KEPT_BY_JOB, KEPT_BY_SPEC, SIZE_FIELDS, editable
from corral.core.model import CLUSTER_LABEL, Job, JobState
from corral.core.snapshot.changes import DropJob, PutJob
from corral.core.snapshot.waiting_lines import line_of

NO_CATALOG = Catalog(flavors={}, packages={})


#: Fields of a job's life that change with a check of their own.
_CHECKED = frozenset({"time", "preemptible"})


def edit(work: Work, caller: Caller, ref: str, change: JobChange) -> Job:
    """Change a job that does not run yet, which keeps its age, or the fields of any job that only describe it."""
    job = own_job(work, caller, ref)
    waits = job.state in (JobState.QUEUED, JobState.CREATED)
    always = editable(Edit.ALWAYS)
    if not waits and not (change.given and change.given <= always):
        raise WrongState(
            f"job {job.id} is {job.state}: only a job that waits can be changed; "
            f"fields for any time: {', '.join(sorted(always))}",
            state=job.state,
        )
    needs_catalog = change.draft.flavor is not None or change.draft.package is not None
    catalog = load_catalog(work.tx) if needs_catalog else NO_CATALOG
    before = work.jobs.spec(job.id)
    after, spec = edited(work.state, job, before, change, catalog)
    if after.kind is not job.kind:
        require(caller, function_for(after.kind, spec))
    if "after" in change.given:
        after = _coming_after(work, caller, after, change.draft.after)
    if after == job and spec == before:
        return job
    work.record(
        caller,
        "job.edited",
        job.id,
        owner=job.user,
        detail=_differences(JobRecord(job=job, spec=before), JobRecord(job=after, spec=spec)),
    )
    if spec != before:
        work.jobs.edit_spec(job, spec)
    return job if after == job else work.jobs.edit(job, after)


def edited(state: State, job: Job, spec: JobSpec, change: JobChange, catalog: Catalog) -> tuple[Job, JobSpec]:
    """The job as the change would make it, and what it runs; refused if it could not wait like that. Nothing is
    changed, and what it comes after is not looked at."""
    draft = change.draft
    after = replace(job, **_new_values(job, KEPT_BY_JOB, change, draft))
    spec = replace(spec, **_new_values(job, KEPT_BY_SPEC, change, draft.spec))
    if "preemptible" in change.given:
        after = _with_preemptible(after, draft.preemptible)
    is_about_size = bool(change.given & SIZE_FIELDS)
    if is_about_size:
        after, spec = _reshaped(state, after, spec, change, catalog)
    if is_about_size or change.given & {"queue", "time"}:
        if "queue" in change.given:
            after = replace(after, queue=draft.queue or "")
        if "time" in change.given:
            after = replace(after, time_limit_seconds=draft.time_limit_seconds)
        after = settled(state, after)
        _check(state, job, after)
    if line_of(after) != line_of(job):
        # A pin and an own order are places in the line that it leaves.
        after = replace(after, pinned_at=None, user_order=0)
    return after, spec


def _new_values(job: Job, fields: Sequence[JobField], change: JobChange, values: JobDraft | JobSpec) -> dict[str, Any]:
    """The given values of the fields that change without a further check."""
    found = {}
    for row in fields:
        value = getattr(values, row.attribute)
        if row.name not in change.given or row.name in _CHECKED or value is None:
            continue
        if row.edit is Edit.UNSTARTED and job.attempt:
            raise WrongState(f"{job.id} has started before: its {row.name} stays", state=job.state)
        found[row.attribute] = value
    return found


@contextmanager
def left_out(state: State, job: Job) -> Iterator[None]:
    """The snapshot without a job that waits, for as long as the block lasts."""
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
    if spec.task is not None:
        raise Invalid(f"{job.id} holds GPUs for a task: release it, and allocate anew", field="job")
    given = change.given & SIZE_FIELDS
    draft = merged(job, spec, JobChange(given=given, draft=change.draft))
    if draft.flavor is not None or draft.package is not None:
        draft = with_pick(catalog, draft)
    kind = kind_of(draft)
    check_nodes(draft.request, kind)
    elastic = elastic_of(state, draft, kind)
    # Its mounts stay, and so does the cluster that they are in.
    request = in_cluster(request_for(draft.request, elastic), dict(job.request.labels).get(CLUSTER_LABEL))
    local_bytes = local_bytes_of(spec.mounts, request.nodes)
    return replace(job, kind=kind, request=request, elastic=elastic, local_bytes=local_bytes), draft.spec


def _with_preemptible(job: Job, preemptible: bool | None) -> Job:
    """Sets whether the job may be preempted. Only before the first start: a job that has borrowed GPUs must stay
    preemptible.
    """
    wanted = job.kind.is_preemptible if preemptible is None else preemptible
    if job.attempt and wanted != job.preemptible:
        raise WrongState(f"{job.id} has started before: whether it may be preempted stays", state=job.state)
    return replace(job, preemptible=wanted)


def _check(state: State, job: Job, after: Job) -> None:
    """The checks of a new job that the change matters for; unchanged values are not checked again."""
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


def _differences(before: JobRecord, after: JobRecord) -> dict[str, Any]:
    """The changed fields for the audit log, each with its old and new value."""
    was, now = _facts(before), _facts(after)
    return {field: {"was": was[field], "is": now[field]} for field in was if was[field] != now[field]}


def _facts(record: JobRecord) -> dict[str, Any]:
    job, request, elastic = record.job, record.job.request, record.job.elastic
    return {
        "queue": job.queue,
        **{row.attribute: getattr(job, row.attribute) for row in KEPT_BY_JOB if row.edit is not Edit.NEVER},
        **{row.attribute: getattr(record.spec, row.attribute) for row in KEPT_BY_SPEC if row.edit is not Edit.NEVER},
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
