"""Workbenches: create, list, show, start, stop, delete. `jupyter.py` forwards requests to their Jupyter."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Query, Request, Response

from corral.control.errors import NotFound
from corral.control.jobs import jobs
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Tool, Transaction
from corral.control.records import JobFilter, JobRecord
from corral.control.workbenches import workbenches
from corral.control.workbenches.workbenches import is_workbench
from corral.core.model import JobKind, JobState
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import own_record
from corral.server.schemas.base import ListView
from corral.server.schemas.workbenches.workbenches import (
    WorkbenchCreate,
    WorkbenchView,
    workbench_draft,
    workbench_view,
)
from corral.server.workbenches.workbench_routes import place_of

router = resource_router("/workbenches", "workbenches")


@router.post("", status_code=201, operation_id="create_workbench", responses=problems(403, 409))
async def create_workbench(
    body: WorkbenchCreate, request: Request, caller: AnyCaller, context: Context
) -> WorkbenchView:
    """Create a workbench and start it, unless it is held. Refused if a program that it needs is missing."""
    draft = workbench_draft(body)
    missing = await context.steps.do(caller.name, context.workbenches.missing, caller.name, draft.spec, draft.request)
    record = await context.execute(workbenches.create, caller, draft, missing, ssh_if_possible=body.ssh is None)
    return await _shown(context, request, caller, record)


@router.get("", operation_id="list_workbenches", responses=problems())
async def list_workbenches(
    request: Request,
    caller: AnyCaller,
    context: Context,
    state: Annotated[list[JobState], Query()] = [],  # noqa: B006 - FastAPI copies defaults
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[WorkbenchView]:
    """The caller's own workbenches, also stopped ones, the newest first; for operators, those of all users."""
    user = None if caller.is_operator else caller.name
    where = JobFilter(states=tuple(state), kinds=(JobKind.WORKBENCH,), user=user)
    try:
        page = await context.read(lambda tables: tables.jobs.page(where, sort="-id", cursor=cursor, limit=limit))
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    shown = [await _shown(context, request, caller, record) for record in page.items if is_workbench(record)]
    return ListView(items=shown, next_cursor=page.next_cursor)


@router.get("/{workbench}", operation_id="get_workbench", responses=problems(404))
async def get_workbench(workbench: str, request: Request, caller: AnyCaller, context: Context) -> WorkbenchView:
    """A workbench by its id, or by the name of one of the caller's own."""
    return await _shown(context, request, caller, await context.read(_own, caller, workbench))


@router.post("/{workbench}/start", operation_id="start_workbench", responses=problems(403, 404, 409))
async def start_workbench(workbench: str, request: Request, caller: AnyCaller, context: Context) -> WorkbenchView:
    """Start a workbench again, with its settings."""
    found = await context.read(_own, caller, workbench)
    # Checked before the use case, which must not wait for a disk.
    missing = await context.steps.do(
        caller.name, context.workbenches.missing, found.job.user, found.spec, found.job.request
    )
    record = await context.execute(_started, caller, found.job.id, missing)
    return await _shown(context, request, caller, record)


@router.post("/{workbench}/stop", operation_id="stop_workbench", responses=problems(404, 409))
async def stop_workbench(workbench: str, request: Request, caller: AnyCaller, context: Context) -> WorkbenchView:
    """Stop a workbench. Its settings and its own directory are kept."""
    return await _shown(context, request, caller, await context.execute(_stopped, caller, workbench))


@router.delete("/{workbench}", status_code=204, operation_id="delete_workbench", responses=problems(404, 409))
async def delete_workbench(workbench: str, caller: AnyCaller, context: Context) -> Response:
    """Delete a workbench for good, with its own directory."""
    await context.execute(_deleted, caller, workbench)
    return Response(status_code=204)


async def _shown(context: ServerContext, request: Request, caller: Caller, record: JobRecord) -> WorkbenchView:
    status = await context.steps.do(caller.name, context.workbenches.status, record.job)
    server = context.settings.server.public_url or f"{request.url.scheme}://{request.url.netloc}"
    return workbench_view(
        record,
        caller,
        status,
        idle_seconds=None if status is None else context.workbenches.idle_seconds(record.job, status),
        server=server,
        ssh_host=await _ssh_host(context, caller, record, server),
    )


async def _ssh_host(context: ServerContext, caller: Caller, record: JobRecord, server: str) -> str:
    """The node's address if it is another machine, otherwise this server's."""
    here = context.settings.workbench.ssh_host or urlsplit(server).hostname or "localhost"
    routes = context.workbenches.routes
    if not record.spec.ssh or record.job.state is not JobState.RUNNING or not routes.has_elsewhere():
        return here
    place = await context.inspect(place_of, record.job.id)
    address = None if place is None else await context.steps.do(caller.name, routes.address, place)
    return address or here


def _own(tables: Transaction, caller: Caller, ref: str) -> JobRecord:
    record = own_record(tables, caller, ref)
    if not is_workbench(record):
        raise NotFound(f"there is no workbench {ref!r}", field="workbench")
    return record


def _started(work: Work, caller: Caller, ref: str, missing: list[Tool]) -> JobRecord:
    job = workbenches.start(work, caller, ref, missing)
    return JobRecord(job=job, spec=work.jobs.spec(job.id))


def _stopped(work: Work, caller: Caller, ref: str) -> JobRecord:
    job = jobs.stop(work, caller, workbenches.own_workbench(work, caller, ref).id)
    return JobRecord(job=job, spec=work.jobs.spec(job.id))


def _deleted(work: Work, caller: Caller, ref: str) -> None:
    jobs.delete(work, caller, workbenches.own_workbench(work, caller, ref).id)
