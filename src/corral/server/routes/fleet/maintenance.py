"""Maintenance windows: times in which nodes have no jobs."""

from __future__ import annotations

from fastapi import Response

from corral.control.fleet.draining import maintenance
from corral.control.live.state import State
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.fleet.maintenance import (
    MaintenanceCreate,
    MaintenanceEdit,
    MaintenanceView,
    draft_of,
    maintenance_view,
)

router = resource_router("/maintenance-windows", "maintenance")


@router.get("", operation_id="list_maintenance_windows", responses=problems())
async def list_maintenance_windows(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[MaintenanceView]:
    """All maintenance windows, including those that ended lately. A repeated one is listed once, with its next time."""
    views = await context.inspect(_views, context.clock.now())
    return page_of(views, key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("", status_code=201, operation_id="create_maintenance_window", responses=problems(403, 409))
async def create_maintenance_window(body: MaintenanceCreate, caller: Operator, context: Context) -> MaintenanceView:
    """Plan maintenance: the nodes are drained before it, and take jobs again after it. Jobs that are left when it
    begins are asked to save and continue elsewhere; `GET /drain-preview` shows which."""
    await context.execute(maintenance.create, caller, body.name, draft_of(body))
    with showing_new():
        return await _shown(context, body.name)


@router.get("/{name}", operation_id="get_maintenance_window", responses=problems(404))
async def get_maintenance_window(name: str, caller: AnyCaller, context: Context) -> MaintenanceView:
    """One maintenance window with its state, and the nodes that still have jobs."""
    return await _shown(context, name)


@router.patch("/{name}", operation_id="edit_maintenance_window", responses=problems(403, 404, 409))
async def edit_maintenance_window(
    name: str, body: MaintenanceEdit, caller: Operator, context: Context
) -> MaintenanceView:
    """Change the given fields. A window that is under way goes on with the new settings."""
    await context.execute(maintenance.edit, caller, name, draft_of(body))
    return await _shown(context, name)


@router.delete("/{name}", status_code=204, operation_id="delete_maintenance_window", responses=problems(403, 404))
async def delete_maintenance_window(name: str, caller: Operator, context: Context) -> Response:
    """Delete a maintenance window. Nodes that are drained for it take jobs again at once."""
    await context.execute(maintenance.delete, caller, name)
    return Response(status_code=204)


def _views(state: State, now: float) -> list[MaintenanceView]:
    busy = maintenance.busy_nodes(state)
    return [maintenance_view(window, busy, now) for window in maintenance.listed(state)]


async def _shown(context: ServerContext, name: str) -> MaintenanceView:
    now = context.clock.now()

    def view(state: State) -> MaintenanceView:
        return maintenance_view(maintenance.existing(state, name), maintenance.busy_nodes(state), now)

    return await context.inspect(view)
