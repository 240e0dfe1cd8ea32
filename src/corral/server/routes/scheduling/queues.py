"""Queues: their settings, their waiting lines, and changes by operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Response

from corral.control.errors import NotFound
from corral.control.jobs.job_clusters import Homes, homes_of
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.scheduling import queues, views
from corral.core.model import JobState, Queue
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.events.visibility import JobIdFilter
from corral.server.http.cluster_choice import check_cluster
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.fleet.catalog import DeletedView, NamesDelete
from corral.server.schemas.scheduling.explain import ReasonView, reason_view
from corral.server.schemas.scheduling.queues import (
    MOST_NEXT,
    NextJobView,
    OrderView,
    QueueCreate,
    QueueEdit,
    QueueView,
    changes_of,
    line_view,
    next_jobs,
    queue_of,
    queue_view,
)

router = resource_router("/queues", "queues")


@router.get("", operation_id="list_queues", responses=problems())
async def list_queues(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[QueueView]:
    """All queues with settings, limits and counts of jobs."""
    found = await context.inspect(views.queue_views)
    page = page_of(found, key=lambda view: (view.queue.name,), limit=limit, cursor=cursor)
    return ListView(items=[queue_view(view) for view in page.items], next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="create_queue", responses=problems(403, 409))
async def create_queue(body: QueueCreate, caller: Operator, context: Context) -> QueueView:
    """Create a queue in a pool, with its ordering policy, limits and guarantees."""
    queue = await context.execute(queues.create, caller, queue_of(body, context.settings.scheduling.blocking))
    with showing_new():
        return await _shown(context, queue.name)


@router.get("/{name}", operation_id="get_queue", responses=problems(404))
async def get_queue(name: str, caller: AnyCaller, context: Context) -> QueueView:
    """One queue with settings, limits and counts of jobs."""
    return await _shown(context, name)


@router.patch("/{name}", operation_id="edit_queue", responses=problems(403, 404))
async def edit_queue(name: str, body: QueueEdit, caller: Operator, context: Context) -> QueueView:
    """Change the given fields. Waiting jobs are ordered by the new settings at once."""
    await context.execute(_edit, caller, name, changes_of(body))
    return await _shown(context, name)


@router.delete("/{name}", status_code=204, operation_id="delete_queue", responses=problems(403, 404, 409))
async def delete_queue(name: str, caller: Operator, context: Context) -> Response:
    """Delete a queue. Refused while it has jobs."""
    await context.execute(queues.delete, caller, name)
    return Response(status_code=204)


@router.post(":delete", operation_id="delete_queues", responses=problems(403, 404, 409))
async def delete_queues(body: NamesDelete, caller: Operator, context: Context) -> DeletedView:
    """Delete several queues: all of them or none."""
    return DeletedView(deleted=await context.execute(queues.delete_many, caller, body.names))


@router.get("/{name}/order", operation_id="get_queue_order", responses=problems(404))
async def get_queue_order(name: str, caller: AnyCaller, context: Context) -> OrderView:
    """The waiting jobs in their order, by waiting line: the first 500 of each, and the caller's own."""
    lines, others, homes = await context.inspect(_order, context.clock.now(), name, caller.name)
    expected, shows_names = context.estimate_worker.of, context.settings.scheduling.show_queued_names
    shown = [line_view(line, caller, expected, homes, shows_names=shows_names) for line in lines]
    return OrderView(lines=shown, waiting_for_others=others)


@router.get(":next", operation_id="list_next_jobs", responses=problems())
async def list_next_jobs(
    caller: AnyCaller,
    context: Context,
    limit: Annotated[int, Query(ge=1, le=MOST_NEXT, description="Number of jobs.")] = 6,
    cluster: Annotated[str | None, Query(max_length=253, description="Only jobs that may run there.")] = None,
) -> ListView[NextJobView]:
    """The waiting jobs of all queues that are expected to start first, each with the reason that holds it."""
    check_cluster(context, cluster)
    lines, homes = await context.inspect(_first_places, context.clock.now())
    expected, shows_names = context.estimate_worker.of, context.settings.scheduling.show_queued_names
    jobs = [job for line in lines for job in line_view(line, caller, expected, homes, shows_names=shows_names).jobs]
    found = next_jobs([job for job in jobs if cluster is None or job.cluster in (None, cluster)], limit)
    reasons = await context.inspect(_reasons, context.clock.now(), [job.id for job in found if job.id], caller)
    return ListView(items=[NextJobView(**job.model_dump(), reason=reasons.get(job.id or "")) for job in found])


async def _shown(context: Context, name: str) -> QueueView:
    found = await context.inspect(views.queue_views)
    for view in found:
        if view.queue.name == name:
            return queue_view(view)
    raise NotFound(f"there is no queue {name!r}", field="queue")


def _edit(work: Work, caller: Caller, name: str, changes: dict[str, Any]) -> Queue:
    return queues.edit(work, caller, replace(queues.existing(work, name), **changes))


def _order(state: State, now: float, name: str, whose: str) -> tuple[list[views.LineView], int, Homes]:
    if name not in state.snapshot.queues:
        raise NotFound(f"there is no queue {name!r}", field="queue")
    return views.queue_order(state, now, name, whose=whose), views.waiting_for_others(state, name), homes_of(state)


def _first_places(state: State, now: float) -> tuple[list[views.LineView], Homes]:
    """The beginning of every line: a later job of it is hardly ever among the first ones of all."""
    names = sorted({key.queue for key in state.snapshot.lines})
    lines = [line for name in names for line in views.queue_order(state, now, name, MOST_NEXT)]
    return lines, homes_of(state)


def _reasons(state: State, now: float, ids: Sequence[str], caller: Caller) -> dict[str, ReasonView]:
    """The first reason of each of these jobs; a job that has just started is left out."""
    id_filter = JobIdFilter(caller=caller, jobs=state.snapshot.jobs)
    waiting = [job for job_id in ids if (job := state.snapshot.jobs.get(job_id)) and job.state is JobState.QUEUED]
    explained = {job.id: id_filter.over(views.why(state, now, job)).reasons for job in waiting}
    return {job_id: reason_view(reasons[0]) for job_id, reasons in explained.items() if reasons}
