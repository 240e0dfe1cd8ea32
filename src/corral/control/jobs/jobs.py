"""Use cases of jobs: submit, start, stop, requeue, pin, move, delete. Changes of waiting jobs are in `job_edit`.

Each use case checks everything before it changes anything, so that a refusal leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.control.datasets.output_commits import check_commit
from corral.control.errors import Invalid, NotFound, Refusal, WrongState, about_item, in_list
from corral.control.fleet.catalog import FLAVOR_LABEL, PACKAGE_LABEL, Catalog, load_catalog, picked
from corral.control.jobs import images
from corral.control.jobs.admission import admit, check_name, check_texts, elastic_size, given_name, settled
from corral.control.jobs.dependencies import resolved, still_open
from corral.control.jobs.job_kinds import derived_kind
from corral.control.jobs.job_references import job_of_reference, named_jobs
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import secrets
from corral.control.people.operators import require_operator
from corral.control.people.permissions import function_for, require
from corral.control.records import JobRecord, JobSpec, MountSpec
from corral.control.scheduling.queue_choice import is_within_reach
from corral.control.storage import mounts
from corral.control.storage.mount_text import MountRequest
from corral.control.system.policies import Policies
from corral.core.copies import replace
from corral.core.jobs.fresh_start import BY_PERSONS
from corral.core.jobs.job_fields import KEPT_BY_JOB
from corral.core.jobs.lifecycle import StartRequested, StopRequested
from corral.core.model import Elastic, EndReason, Job, JobKind, JobState, Request
from corral.core.scheduling.ordering import POLICIES
from corral.core.snapshot.waiting_lines import line_of

MAX_BATCH = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDraft:
    """A job as requested; None where the installation decides."""

    spec: JobSpec
    request: Request = field(default_factory=Request)
    name: str | None = None
    #: None means: by what it runs, and on how many nodes
    kind: JobKind | None = None
    #: what a person calls it; it must be what it is
    declared_kind: JobKind | None = None
    #: None means: the right one of those that the user may use
    queue: str | None = None
    #: names out of the catalog; a package brings the whole size, a flavor the models and labels
    flavor: str | None = None
    package: str | None = None
    priority: int | None = None
    time_limit_seconds: float | None = None
    grace_seconds: float | None = None
    max_retries: int | None = None
    #: None means: as the installation says
    retry_on: tuple[str, ...] | None = None
    idles: bool | None = None
    restart_if_hung: bool | None = None
    #: None means: as jobs of its kind usually are
    preemptible: bool | None = None
    #: an elastic job: the least and the most GPUs; None for one of them means the installation's
    min_gpus: int | None = None
    max_gpus: int | None = None
    #: whether an elastic job may be resized although it never wrote a checkpoint; None means no
    restart_unsaved: bool | None = None
    #: stay created until it is started explicitly
    hold: bool = False
    #: jobs that must have completed before it starts: ids, names of own ones, names of own arrays
    after: tuple[str, ...] = ()
    #: storage to be mounted, as it was asked for; what was looked up is in the spec
    mounts: tuple[MountRequest, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class JobChange:
    """The values of a clone or an edited job that differ; fields that are not in `given` keep their values."""

    given: frozenset[str]
    #: the values of the given fields
    draft: JobDraft = field(default_factory=lambda: JobDraft(spec=JobSpec(command=())))


def submit(work: Work, caller: Caller, drafts: Sequence[JobDraft]) -> list[JobRecord]:
    """Create jobs, all of them or none, and put them in their queues."""
    if len(drafts) > MAX_BATCH:
        raise Invalid(f"at most {MAX_BATCH} jobs in one request", field="jobs", asked=len(drafts), limit=MAX_BATCH)
    jobs = _made(work, caller, drafts := _looked_up(work, caller, drafts))
    jobs = named_jobs(work, caller.name, jobs, [draft.spec for draft in drafts])
    _admit_starting(work, jobs, drafts)
    records = []
    for job_id, job, draft in zip(work.tx.jobs.next_ids(len(jobs)), jobs, drafts, strict=True):
        named = replace(job, id=job_id, name=job.name or given_name(job_id))
        work.jobs.add(JobRecord(job=named, spec=draft.spec))
        if not draft.hold:
            named = work.jobs.advance(named, StartRequested(at=work.now))
        work.record(caller, "job.submitted", named.id, owner=named.user, detail={"name": named.name})
        records.append(JobRecord(job=named, spec=draft.spec))
    return records


def submit_batch(work: Work, caller: Caller, drafts: Sequence[JobDraft]) -> list[JobRecord]:
    """The same, with refusals that say which one of the list they are about."""
    with in_list("jobs"):
        return submit(work, caller, drafts)


def make_job(work: Work, caller: Caller, draft: JobDraft) -> Job:
    """The job that a draft describes, without an id, and without a queue if none is named; refused if one of its values
    can never be right."""
    if not draft.spec.command or not draft.spec.command[0]:
        raise Invalid("a command is needed", field="command")
    if draft.name is not None:
        check_name(draft.name)
    _check_surroundings(work, caller, draft.spec)
    (draft,) = _looked_up(work, caller, [draft])
    kind = kind_of(draft)
    require(caller, function_for(kind, draft.spec))
    check_nodes(draft.request, kind)
    elastic = elastic_of(work.state, draft, kind)
    return Job(
        id="j-0",
        name=draft.name or "",
        user=caller.name,
        kind=kind,
        queue=draft.queue or "",
        request=request_for(draft.request, elastic),
        elastic=elastic,
        created_at=work.now,
        after=resolved(work, caller, draft.after),
        mounts=mounts.volume_mounts(draft.spec.mounts),
        local_bytes=mounts.local_bytes_of(draft.spec.mounts, draft.request.nodes),
        **_kept_values(draft, kind, work.state.policies),
    )


def _kept_values(draft: JobDraft, kind: JobKind, policies: Policies) -> dict[str, Any]:
    """The values that the job keeps as they were given. A value that was not given comes from the installation, from
    the job's kind, or from the default of the model."""
    # An app waits for its users, as a workbench does.
    values: dict[str, Any] = {"preemptible": kind.is_preemptible, "idles": draft.spec.has_app}
    for row in KEPT_BY_JOB:
        value = getattr(draft, row.attribute)
        if value is None and row.installation:
            value = getattr(policies, row.installation)
        if value is not None:
            values[row.attribute] = value
    return values


def start(work: Work, caller: Caller, ref: str) -> Job:
    """Queue a created or ended job, with the same settings.

    If its queue was deleted or its user may not use it any more, the queue is chosen as for a new job.
    """
    job = own_job(work, caller, ref)
    require(caller, function_for(job.kind, work.jobs.spec(job.id)))
    if job.state.is_active:
        raise WrongState(f"job {job.id} is {job.state} already", state=job.state)
    mounts.check_again(work.tx, job.user, work.jobs.spec(job.id))
    queue = work.state.snapshot.queues.get(job.queue)
    fitting = replace(job, after=still_open(work, job)) if job.after else job
    if queue is None or not is_within_reach(work.state.snapshot, job.user, queue):
        fitting = settled(work.state, replace(fitting, queue=""))
    admit(work.state, [fitting])
    mounts.check_local_quota(work.tx, work.state, job.user, [fitting])
    if fitting != job:
        fitting = work.jobs.edit(job, fitting)
    started = work.jobs.advance(fitting, StartRequested(at=work.now))
    work.record(caller, "job.started", job.id, owner=job.user, detail={"queue": started.queue})
    return started


def stop(work: Work, caller: Caller, ref: str) -> Job:
    """End a job:

    At once while it waits, with a warning and a grace time while it runs. A second stop changes nothing.
    """
    job = own_job(work, caller, ref)
    if job.state.is_ended:
        raise WrongState(f"job {job.id} has ended already: {job.state}", state=job.state)
    by_owner = caller.name == job.user
    reason = EndReason.STOPPED_BY_USER if by_owner else EndReason.STOPPED_BY_OPERATOR
    if job.state is JobState.STOPPING and job.stopping_for in BY_PERSONS:
        return job
    stopped = work.jobs.advance(job, StopRequested(at=work.now, reason=reason))
    work.record(caller, "job.stop-requested", job.id, owner=job.user)
    if stopped.state is JobState.STOPPED:
        work.record(caller, "job.stopped", job.id, owner=job.notified_user, detail={"reason": reason})
    return stopped


def requeue(work: Work, caller: Caller, ref: str) -> Job:
    """Requeues a running job after a warning and a grace time to save; the requeue costs no retry."""
    job = own_job(work, caller, ref)
    if job.state is JobState.STOPPING and job.stopping_for is EndReason.PREEMPTED:
        return job
    if job.state not in (JobState.STARTING, JobState.RUNNING):
        raise WrongState(f"job {job.id} is {job.state}: only one that runs can go back to its queue", state=job.state)
    by = "its owner" if caller.name == job.user else "an operator"
    stop = StopRequested(at=work.now, reason=EndReason.PREEMPTED, message=f"sent back to its queue by {by}")
    work.record(caller, "job.requeue-requested", job.id, owner=job.user, detail={"attempt": job.attempt})
    return work.jobs.advance(job, stop)


def pin(work: Work, caller: Caller, ref: str) -> Job:
    """Put a waiting job in front of all others of its line; the later pin goes first."""
    return _set_pin(work, caller, ref, pinned_at=work.now, action="job.pinned")


def unpin(work: Work, caller: Caller, ref: str) -> Job:
    return _set_pin(work, caller, ref, pinned_at=None, action="job.unpinned")


def move(work: Work, caller: Caller, ref: str, *, before: str | None = None, after: str | None = None) -> Job:
    """Change the order among one's own waiting jobs of one line."""
    if (before is None) == (after is None):
        raise Invalid("say either before or after which job", field="before")
    job = _waiting(own_job(work, caller, ref))
    target = _waiting(own_job(work, caller, before or after or ""))
    if job.id == target.id:
        raise Invalid(f"{job.id} cannot be moved next to itself", field="before" if before else "after")
    if job.user != target.user:
        raise Invalid(f"{job.id} and {target.id} belong to different users; only one's own order can be changed")
    for item in (job, target):
        if item.after:
            raise WrongState(f"{item.id} waits for other jobs, and has no place in a line yet", state=item.state)
    if line_of(job) != line_of(target):
        raise Invalid(f"{job.id} and {target.id} wait in different lines", field="before" if before else "after")
    queue = work.state.snapshot.queues.get(job.queue)
    if queue is not None and not POLICIES[queue.policy].uses_own_order:
        raise WrongState(
            f"queue {queue.name} orders its jobs by {queue.policy} ({POLICIES[queue.policy].description}):"
            " users cannot change that order"
        )
    sequence = [item for item in work.state.snapshot.lines[line_of(job)].own_sequence(job.user) if item.id != job.id]
    place = next((n for n, item in enumerate(sequence) if item.id == target.id), None)
    if place is None or job.pinned_at is not None:
        raise WrongState("a pinned job has its place from an operator", state="pinned")
    sequence.insert(place + (after is not None), job)
    # Moved jobs get negative places, so that jobs submitted later, with place 0, stay behind them.
    for order, item in enumerate(sequence, start=-len(sequence)):
        if item.user_order != order:
            moved = work.jobs.edit(item, replace(item, user_order=order))
            job = moved if item.id == job.id else job
    work.record(caller, "job.moved", job.id, owner=job.user, detail={"before": before, "after": after})
    return job


def delete(work: Work, caller: Caller, ref: str) -> Job:
    """Remove an ended or never started job, with its attempts and logs."""
    job = own_job(work, caller, ref)
    if job.state.is_active:
        raise WrongState(f"job {job.id} is {job.state}: stop it first", state=job.state)
    work.jobs.delete(job)
    work.record(caller, "job.deleted", job.id, owner=job.user, detail={"name": job.name})
    return job


def own_job(work: Work, caller: Caller, ref: str) -> Job:
    """The job behind an id or a name of the caller's, if the caller may touch it."""
    job = job_of_reference(work, caller, ref)
    if job is None or (job.user != caller.name and not caller.is_operator):
        # Do not reveal whether another user's job exists.
        raise NotFound(f"there is no job {ref!r}", field="job")
    return job


def _made(work: Work, caller: Caller, drafts: Sequence[JobDraft]) -> list[Job]:
    check_texts([draft.spec for draft in drafts])
    jobs = []
    #: many jobs of one submission wait for the same others, who are looked up once
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    for number, draft in enumerate(drafts):
        with about_item(number):
            if draft.after not in known:
                known[draft.after] = resolved(work, caller, draft.after)
            job = make_job(work, caller, replace(draft, after=()) if draft.after else draft)
            jobs.append(settled(work.state, replace(job, after=known[draft.after]) if draft.after else job))
    return jobs


def _admit_starting(work: Work, jobs: Sequence[Job], drafts: Sequence[JobDraft]) -> None:
    starting = [number for number, draft in enumerate(drafts) if not draft.hold]
    try:
        admit(work.state, [jobs[number] for number in starting])
        if starting:
            user = jobs[starting[0]].user
            mounts.check_local_quota(work.tx, work.state, user, [jobs[number] for number in starting])
    except Refusal as refusal:
        if refusal.item is not None:
            refusal.item = starting[refusal.item]
        raise


def _check_surroundings(work: Work, caller: Caller, spec: JobSpec) -> None:
    """Checks the environment of the program: its secrets, its repository, and its image, or the virtual environment on
    the node."""
    secrets.check_uses(work.tx, caller.name, spec.secrets)
    _check_git(work, caller, spec)
    if spec.image is not None:
        images.check_source(work.tx, caller.name, spec.image)
        if spec.venv is not None:
            raise Invalid("an image brings its own environment: leave image or venv out", field="venv")


def _check_git(work: Work, caller: Caller, spec: JobSpec) -> None:
    if not spec.git:
        for field in ("git_ref", "git_dir", "git_secret"):
            if getattr(spec, field):
                raise Invalid(f"{field} goes with a repository: give git, too", field=field)
        return
    if spec.workdir is not None:
        raise Invalid("the job begins in its repository: leave workdir out, and give git_dir", field="workdir")
    if not spec.git_commit:
        raise Invalid("the commit of the repository was not looked up", field="git")
    if spec.git_secret:
        secrets.named(work.tx, caller.name, spec.git_secret, field="git_secret")


def check_nodes(request: Request, kind: JobKind) -> None:
    if request.is_gang and kind is not JobKind.DISTRIBUTED:
        raise Invalid(f"a {kind} job runs on one node; ask for kind distributed", field="nodes", asked=request.nodes)


def request_for(request: Request, elastic: Elastic | None) -> Request:
    """The guaranteed request, which waiting lines, limits and quotas count: the minimum of an elastic job."""
    return request if elastic is None else replace(request, gpus=elastic.min_gpus, gpu_milli=0)


def elastic_of(state: State, draft: JobDraft, kind: JobKind) -> Elastic | None:
    if draft.min_gpus is None and draft.max_gpus is None:
        return None
    if kind is JobKind.WORKBENCH and draft.spec.task is None:
        raise Invalid("a workbench cannot be elastic: its programs would end with each resize", field="min_gpus")
    return elastic_size(state.policies.scaling, draft.min_gpus, draft.max_gpus)


def kind_of(draft: JobDraft) -> JobKind:
    return draft.kind or derived_kind(draft.spec, draft.request)


def _looked_up(work: Work, caller: Caller, drafts: Sequence[JobDraft]) -> list[JobDraft]:
    """The drafts with catalog names and mounts resolved in their requests and specs."""
    found = []
    #: many jobs of one submission mount the same, which is looked up once
    known: dict[tuple[MountRequest, ...], tuple[MountSpec, ...]] = {}
    for number, draft in enumerate(_picked(work, drafts)):
        if draft.mounts:
            with about_item(number):
                if draft.mounts not in known:
                    known[draft.mounts] = mounts.resolved(work.tx, caller, draft.mounts)
                specs = known[draft.mounts]
                request = mounts.placed(work.tx, draft.request, specs)
            draft = replace(draft, request=request, spec=replace(draft.spec, mounts=specs), mounts=())
        if draft.spec.commit_outputs:
            with about_item(number):
                check_commit(work.tx, caller, draft.spec.commit_outputs)
        found.append(draft)
    return found


def _picked(work: Work, drafts: Sequence[JobDraft]) -> list[JobDraft]:
    """The drafts with what they pick out of the catalog in their requests, and the names of it in their specs."""
    if all(draft.flavor is None and draft.package is None for draft in drafts):
        return list(drafts)
    catalog = load_catalog(work.tx)
    return [with_pick(catalog, draft) for draft in drafts]


def with_pick(catalog: Catalog, draft: JobDraft) -> JobDraft:
    request = picked(catalog, draft.request, kind_of(draft), flavor=draft.flavor, package=draft.package)
    given = {FLAVOR_LABEL: draft.flavor, PACKAGE_LABEL: draft.package}
    labels = {**draft.spec.labels, **{label: name for label, name in given.items() if name is not None}}
    return replace(draft, request=request, spec=replace(draft.spec, labels=labels), flavor=None, package=None)


def _waiting(job: Job) -> Job:
    if job.state is not JobState.QUEUED:
        raise WrongState(f"job {job.id} is {job.state}, not queued", state=job.state)
    return job


def _set_pin(work: Work, caller: Caller, ref: str, *, pinned_at: float | None, action: str) -> Job:
    require_operator(caller, "pin jobs")
    job = _waiting(own_job(work, caller, ref))
    pinned = work.jobs.edit(job, replace(job, pinned_at=pinned_at))
    work.record(caller, action, job.id, owner=job.user)
    return pinned
