"""Active checks of GPUs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from corral.control.monitoring import gpu_checks
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.paging import Cursor, Limit, cursor_of, page_from
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView, rfc3339
from corral.server.schemas.monitoring.health_checks import (
    HealthCheckCreate,
    HealthChecksStarted,
    HealthCheckView,
    RepairTicketView,
    health_check_view,
)

router = resource_router("/health-checks", "fleet")

#: How many checks a ticket shows.
_IN_TICKET = 5


@router.post("", status_code=201, operation_id="run_health_checks", responses=problems(403, 404, 409))
async def run_health_checks(body: HealthCheckCreate, caller: Operator, context: Context) -> HealthChecksStarted:
    """Check a GPU, or every GPU of a node, by jobs of the lowest priority. A suspect or failed GPU returns to use if it
    passes."""
    rules = context.settings.check_rules
    records = await context.execute(gpu_checks.request, caller, body.target, body.checks or (), rules)
    return HealthChecksStarted(items=[health_check_view(record) for record in records])


@router.get("", operation_id="list_health_checks", responses=problems())
async def list_health_checks(
    caller: AnyCaller,
    context: Context,
    gpu: Annotated[str | None, Query(min_length=1, max_length=253, description="Only checks of this GPU.")] = None,
    node: Annotated[str | None, Query(min_length=1, max_length=253, description="Only checks of this node.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[HealthCheckView]:
    """Checks with their measurements and problems, the newest first."""
    place = cursor_of(cursor, int)
    before = None if place is None else f"j-{place[0]}"
    found = await context.read(
        lambda tables: tables.health.checks(gpu_id=gpu, node=node, before=before, limit=limit + 1)
    )
    page = page_from(found, key=lambda record: (int(record.job_id.rpartition("-")[2]),), limit=limit)
    return ListView(items=[health_check_view(record) for record in page.items], next_cursor=page.next_cursor)


@router.get("/ticket", operation_id="get_repair_ticket", responses=problems(403, 404))
async def get_repair_ticket(
    caller: Operator,
    context: Context,
    gpu: Annotated[str, Query(min_length=1, max_length=253, description="The id of the GPU.")],
) -> RepairTicketView:
    """The text of a repair ticket for a GPU: its place, the evidence and its latest checks."""
    checks = await context.read(lambda tables: tables.health.checks(gpu_id=gpu, limit=_IN_TICKET))
    now = rfc3339(context.clock.now())
    return RepairTicketView(gpu=gpu, text=await context.inspect(gpu_checks.ticket, checks, gpu, now))
