"""Jobs: submit, list, show, start, stop, order, delete."""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Response
from pydantic import Field

from corral.control.errors import NotFound, in_list
from corral.control.fleet.catalog import Catalog, load_catalog
from corral.control.jobs import job_clone, job_edit, jobs
from corral.control.jobs.job_clusters import homes_of
from corral.control.jobs.job_kinds import HOST_COMMAND
from corral.control.jobs.job_references import record_named
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.monitoring import idle_jobs
from corral.control.monitoring.attempt_usage import usage_totals
from corral.control.people.permissions import may_see_job
from corral.control.ports import Transaction
from corral.control.records import EVERY_JOB, Function, IdleWarning, JobFilter, JobRecord, UsageRecord
from corral.control.scheduling import views
from corral.control.scheduling.suggestions import Suggestion, suggestions
from corral.control.system import retention
from corral.control.workbenches import workbenches
from corral.core.jobs.job_fields import SEARCHED
from corral.core.model import Job, JobKind, JobState
from corral.core.monitoring.idleness import IdleRules
from corral.core.scheduling.limits.hold_rules import MOST_NAMED
from corral.server.auth.callers import AnyCaller, Context
from corral.server.events.visibility import JobIdFilter
from corral.server.fleet.summary import stored_jobs
from corral.server.http.cluster_choice import check_cluster
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Filter, Limit
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.jobs.drafts import change_of, clone_of, draft_of, drafts_of
from corral.server.jobs.git_sources import NEW_COMMIT
from corral.server.jobs.preset_files import filled
from corral.server.scheduling.estimate_worker import Current
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.job_bodies import JobBatch, JobClone, JobCreate, JobEdit, JobMove
from corral.server.schemas.jobs.jobs import AttemptView, JobCountsView, JobView, attempt_view, disk_view, job_view
from corral.server.schemas.monitoring.measurements import usage_view
from corral.server.schemas.scheduling.explain import PlanView, WhyView, plan_view, why_view

router = resource_router("", "jobs")

Sort = Literal["id", "-id", "name", "-name", "priority", "-priority", "created_at", "-created_at"]
#: How long the controller may search for suggestions; other requests wait meanwhile.
ADVICE_SECONDS = 0.15
#: How often a job is read that ends between two looks at it.
MOST_READS = 3

FilterText = Annotated[str, Field(min_length=1, max_length=253)]


@router.post("/jobs", status_code=201, operation_id="submit_job", responses=problems(403, 409))
async def submit_job(body: JobCreate, caller: AnyCaller, context: Context) -> JobView:
    """Create a job and put it in its queue."""
    [whole] = await filled(context, [body])
    drafts = await context.git_sources.with_commits(caller, [draft_of(whole)])
    [record] = await context.execute(jobs.submit, caller, drafts)
    return job_view(record, caller)


@router.post("/jobs:batch", status_code=201, operation_id="submit_jobs", responses=problems(403, 409))
async def submit_jobs(body: JobBatch, caller: AnyCaller, context: Context) -> ListView[JobView]:
    """Create many jobs at once: all of them or none."""
    with in_list("jobs"):
        whole = await filled(context, body.jobs)
    drafts = drafts_of(whole)
    with in_list("jobs"):
        drafts = await context.git_sources.with_commits(caller, drafts)
    records = await context.execute(jobs.submit_batch, caller, drafts)
    return ListView(items=[job_view(record, caller) for record in records])


@router.post("/jobs:plan", operation_id="plan_job", responses=problems(403))
async def plan_job(body: JobCreate, caller: AnyCaller, context: Context) -> PlanView:
    """Dry run: what would happen to this job now. Nothing is changed."""
    [whole] = await filled(context, [body])
    [draft] = await context.git_sources.with_commits(caller, [_planned_draft(whole)])
    trial, now = await context.execute(_try_out, caller, draft)
    expected = None
    if trial.start is None and trial.job is not None and trial.snapshot is not None:
        look = partial(context.estimate_worker.estimate_new_job, trial.snapshot, trial.job, now)
        expected = await context.readers.call(caller.name, look)
    live = trial.snapshot.jobs if trial.snapshot is not None else {}
    return plan_view(trial, now, JobIdFilter(caller=caller, jobs=live), expected)


def _planned_draft(body: JobCreate) -> jobs.JobDraft:
    """The draft of a dry run. For a workbench, corral's own command replaces any given one."""
    if body.kind != "workbench":
        return draft_of(body)
    draft = draft_of(body.model_copy(update={"kind": None, "command": list(HOST_COMMAND)}))
    return replace(draft, spec=replace(draft.spec, jupyter=True))


async def where_of(
    caller: AnyCaller,
    context: Context,
    state: Annotated[list[JobState], Query()] = [],  # noqa: B006 - FastAPI copies defaults
    kind: Annotated[list[JobKind], Query()] = [],  # noqa: B006
    user: Annotated[list[FilterText], Query()] = [],  # noqa: B006
    queue: Filter = None,
    name: Filter = None,
    q: Annotated[FilterText | None, Query(description=f"Text in one of these fields: {', '.join(SEARCHED)}.")] = None,
    since: Annotated[FilterText | None, Query(description="Created at this time or later.")] = None,
    until: Annotated[FilterText | None, Query(description="Created before this time.")] = None,
    array: Annotated[FilterText | None, Query(description="Members of arrays of this name.")] = None,
    cluster: Annotated[
        FilterText | None, Query(description="Jobs that ran in this cluster last, or that wait and may run there.")
    ] = None,
) -> JobFilter:
    """The caller's filters, limited to jobs that the caller may see."""
    models = () if cluster is None else await _models_of(context, cluster)
    return JobFilter(
        states=tuple(state),
        kinds=tuple(kind),
        user=None if caller.may(Function.SEE_OTHERS_JOBS) else caller.name,
        users=tuple(user),
        queue=queue,
        name_contains=name,
        text=q,
        since=time_of("since", since),
        until=time_of("until", until),
        array=array,
        cluster=cluster,
        cluster_models=models,
    )


async def _models_of(context: ServerContext, cluster: str) -> tuple[str, ...]:
    check_cluster(context, cluster)
    homes = await context.inspect(homes_of)
    return tuple(sorted(homes.models.get(cluster, ())))


Where = Annotated[JobFilter, Depends(where_of)]


@router.get("/jobs", operation_id="list_jobs", responses=problems())
async def list_jobs(
    caller: AnyCaller, context: Context, where: Where, sort: Sort = "-id", limit: Limit = 50, cursor: Cursor = None
) -> ListView[JobView]:
    """Jobs that match every filter; `state`, `kind` and `user` may be given several times."""
    try:
        page = await context.read(lambda tables: tables.jobs.page(where, sort=sort, cursor=cursor, limit=limit))
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    expected = context.estimate_worker.of
    items = [job_view(record, caller, expected=expected(record.job)) for record in page.items]
    return ListView(items=items, next_cursor=page.next_cursor)


@router.get("/jobs:counts", operation_id="count_jobs", responses=problems())
async def count_jobs(caller: AnyCaller, context: Context, where: Where) -> JobCountsView:
    """The number of jobs that match the same filters, in total and by state."""
    # Those of all jobs are kept: counting a million rows takes long.
    counts = await context.inspect(stored_jobs) if where == EVERY_JOB else None
    if counts is None:
        counts = await context.read(lambda tables: tables.jobs.counts(where))
    by_state = {job_state.value: counts.get(job_state.value, 0) for job_state in JobState}
    return JobCountsView(total=sum(by_state.values()), by_state=by_state)


@router.get("/jobs/{job}", operation_id="get_job", responses=problems(404))
async def get_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """A job by its id, or by the name of one of the caller's own jobs."""

    def read(tables: Transaction) -> tuple[JobRecord, list[UsageRecord], IdleWarning | None]:
        record = find_job(tables, caller, job)
        return record, tables.usage.of_job(record.job.id), tables.health.idle_warnings().get(record.job.id)

    record, used, warning = await context.read(read)
    used_so_far = usage_view(usage_totals(used, context.clock.now()))
    view = job_view(record, caller, used_so_far, warning, context.estimate_worker.of(record.job))
    disk = context.disk_watch.latest(record.job.attempt_id) if record.job.state is JobState.RUNNING else None
    return view.model_copy(update={"disk": disk_view(disk, context.disk_watch.limits)}) if disk else view


@router.patch("/jobs/{job}", operation_id="edit_job", responses=problems(404, 409))
async def edit_job(job: str, body: JobEdit, caller: AnyCaller, context: Context) -> JobView:
    """Change the queue, the priority, the time limit and the dependencies of a job that does not run yet; if it never
    started, its size, too. The job keeps its waiting time."""
    return job_view(await context.execute(changed, job_edit.edit, caller, job, change=change_of(body)), caller)


@router.delete("/jobs/{job}", status_code=204, operation_id="delete_job", responses=problems(404, 409))
async def delete_job(job: str, caller: AnyCaller, context: Context) -> Response:
    """Remove an ended or never started job, with its attempts and logs."""
    await context.execute(jobs.delete, caller, job)
    return Response(status_code=204)


@router.post("/jobs/{job}/start", operation_id="start_job", responses=problems(404, 409))
async def start_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Queue a job that was created on hold."""
    found = await context.read(own_record, caller, job)
    if workbenches.is_hosted(found.spec):
        missing = await context.steps.do(
            caller.name, context.workbenches.missing, found.job.user, found.spec, found.job.request
        )
        return job_view(await context.execute(changed, workbenches.start, caller, job, missing=missing), caller)
    return job_view(await context.execute(changed, jobs.start, caller, job), caller)


@router.post("/jobs/{job}/stop", operation_id="stop_job", responses=problems(404, 409))
async def stop_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Stop a job: it gets SIGTERM, its grace time, then SIGKILL. A job that waits ends at once."""
    return job_view(await context.execute(changed, jobs.stop, caller, job), caller)


@router.post("/jobs/{job}/requeue", operation_id="requeue_job", responses=problems(404, 409))
async def requeue_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Requeue a running job; it resumes later from its last checkpoint. This does not count as a retry."""
    return job_view(await context.execute(changed, jobs.requeue, caller, job), caller)


@router.post("/jobs/{job}/clone", status_code=201, operation_id="clone_job", responses=problems(403, 404, 409))
async def clone_job(job: str, body: JobClone, caller: AnyCaller, context: Context) -> JobView:
    """Submit one of the caller's jobs again, with changes."""
    change = clone_of(body)
    if NEW_COMMIT & change.given:
        original = await context.read(find_job, caller, job)
        own = original.spec if original.job.user == caller.name else None
        change = await context.git_sources.with_commit(caller, change, own)
    return job_view(await context.execute(job_clone.clone, caller, job, change), caller)


@router.post("/jobs/{job}/extend", operation_id="extend_job", responses=problems(404, 409))
async def extend_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Give more time to a job that was warned because it does not use its GPUs; possible once."""
    record, warning = await context.execute(_extended, caller, job, context.settings.idle_rules)
    return job_view(record, caller, warning=warning)


@router.post("/jobs/{job}/pin", operation_id="pin_job", responses=problems(403, 404, 409))
async def pin_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Move the job to the front of its waiting line."""
    return job_view(await context.execute(changed, jobs.pin, caller, job), caller)


@router.post("/jobs/{job}/unpin", operation_id="unpin_job", responses=problems(403, 404, 409))
async def unpin_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Remove the pin: the job is ordered by the policy of its queue again."""
    return job_view(await context.execute(changed, jobs.unpin, caller, job), caller)


@router.post("/jobs/{job}/keep", operation_id="keep_job", responses=problems(404))
async def keep_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Pin the job: retention does not remove it, its logs and its files."""
    return job_view(await context.execute(changed, retention.keep, caller, job), caller)


@router.post("/jobs/{job}/let-go", operation_id="let_go_job", responses=problems(404))
async def let_go_job(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Unpin the job: retention removes it like other ended jobs."""
    return job_view(await context.execute(changed, retention.stop_keeping, caller, job), caller)


@router.post("/jobs/{job}/move", operation_id="move_job", responses=problems(403, 404, 409))
async def move_job(job: str, body: JobMove, caller: AnyCaller, context: Context) -> JobView:
    """Change the order among the caller's own waiting jobs."""
    record = await context.execute(changed, jobs.move, caller, job, before=body.before, after=body.after)
    return job_view(record, caller)


@router.get("/jobs/{job}/why", operation_id="why_job", responses=problems(404))
async def why_job(
    job: str,
    caller: AnyCaller,
    context: Context,
    at: Annotated[
        str | None, Query(max_length=253, description="A moment in the past, to ask why the job waited then.")
    ] = None,
) -> WhyView:
    """Why the job waits: every rule that holds it, with numbers; and changes by the owner that would help."""
    moment = time_of("at", at)
    if moment is not None:
        return await context.time_travel.why(
            caller, moment, context.clock.now(), lambda tables: find_job(tables, caller, job)
        )
    for _ in range(MOST_READS):
        asked = await context.read(_asked, caller, job)
        expected = context.estimate_worker.of(asked.record.job)
        answer = await context.inspect(_why, context.clock.now(), asked, caller, expected)
        if answer is not None:
            return answer
    raise Problem(503, "Changing", f"{job} changes at this moment: ask again.", headers={"Retry-After": "1"})


@router.get("/jobs/{job}/attempts", operation_id="list_attempts", responses=problems(404))
async def list_attempts(job: str, caller: AnyCaller, context: Context) -> ListView[AttemptView]:
    """The attempts of a job: where each ran, how it ended, and what it used."""
    now = context.clock.now()

    def read(tables: Transaction) -> list[AttemptView]:
        job_id = find_job(tables, caller, job).job.id
        used = {line.attempt_id: usage_view(usage_totals([line], now)) for line in tables.usage.of_job(job_id)}
        return [attempt_view(attempt, used.get(attempt.id)) for attempt in tables.attempts.of_job(job_id)]

    return ListView(items=await context.read(read))


def find_job(tables: Transaction, caller: Caller, ref: str) -> JobRecord:
    """A job that the caller may see by its id, or one of the caller's own jobs and tasks by its name."""
    record = tables.jobs.get(ref) if ref.startswith("j-") else None
    if record is None:
        record = record_named(tables, caller.name, ref)
    if record is None or not may_see_job(caller, record.job.user):
        raise NotFound(f"there is no job {ref!r}", field="job")
    return record


def own_record(tables: Transaction, caller: Caller, ref: str) -> JobRecord:
    """Finds a job whose data only its owner and operators may see."""
    record = find_job(tables, caller, ref)
    if record.job.user != caller.name and not caller.is_operator:
        raise NotFound(f"there is no job {ref!r} of yours", field="job")
    return record


def _try_out(work: Work, caller: Caller, draft: jobs.JobDraft) -> tuple[views.TrialRun, float]:
    trial = views.try_out(work.state, work.now, jobs.make_job(work, caller, draft))
    if trial.explanation is not None:
        id_filter = JobIdFilter(caller=caller, jobs=work.state.snapshot.jobs)
        trial = replace(trial, explanation=id_filter.over(trial.explanation))
    return trial, work.now


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """The job in question, with data that only the store has."""

    record: JobRecord
    #: jobs that it depends on; they may not be queued yet, and so are not in the snapshot
    others: dict[str, Job]
    #: None if the caller may not change the job
    catalog: Catalog | None


def _asked(tables: Transaction, caller: Caller, ref: str) -> _Asked:
    record = find_job(tables, caller, ref)
    others = [tables.jobs.get(other) for other in record.job.after[:MOST_NAMED]]
    may_change = caller.is_operator or caller.name == record.job.user
    return _Asked(
        record=record,
        others={other.job.id: other.job for other in others if other is not None},
        catalog=load_catalog(tables) if may_change else None,
    )


def _why(state: State, now: float, asked: _Asked, caller: Caller, expected: Current | None) -> WhyView | None:
    """Runs on the controller's thread, because the snapshot changes a moment later. None if the job has ended since it
    was read."""
    job = asked.record.job
    if job.state.is_active and job.id not in state.snapshot.jobs:
        return None
    live = state.snapshot.jobs.get(job.id, job)
    id_filter = JobIdFilter(caller=caller, jobs=ChainMap(state.snapshot.jobs, asked.others))
    advice: list[Suggestion] = []
    if asked.catalog is not None:
        until = time.monotonic() + ADVICE_SECONDS
        advice = suggestions(
            state, now, job, asked.record.spec, asked.catalog, may_go_on=lambda: time.monotonic() < until
        )
    waits = live.state is JobState.QUEUED
    return why_view(live, id_filter.over(views.why(state, now, job)), id_filter, advice, expected if waits else None)


def _extended(work: Work, caller: Caller, ref: str, rules: IdleRules) -> tuple[JobRecord, IdleWarning | None]:
    job = idle_jobs.extend(work, caller, ref, rules)
    return JobRecord(job=job, spec=work.jobs.spec(job.id)), work.state.idle_warnings.get(job.id)


def changed(work: Work, /, use_case: Callable[..., Job], caller: Caller, ref: str, **options: Any) -> JobRecord:
    """Run a use case and return the job's view."""
    job = use_case(work, caller, ref, **options)
    return JobRecord(job=job, spec=work.jobs.spec(job.id))
