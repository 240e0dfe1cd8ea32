"""The servers over one store: which leads, and how it steps down."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from corral.control.people import audit
from corral.server.auth.callers import Context, Operator
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.system.servers import ServersView, servers_view

router = resource_router("/servers", "system")


@router.get("", operation_id="list_servers", responses=problems(403))
async def list_servers(caller: Operator, context: Context) -> ServersView:
    """The servers over this store: the leader, and those that stand by."""
    return servers_view(await asyncio.to_thread(context.servers.seen))


@router.post(":step-down", status_code=202, operation_id="step_down", responses=problems(403, 409))
async def step_down(caller: Operator, context: Context) -> Response:
    """Let another server lead. The present leader ends its work and starts again as a standby; jobs are untouched."""
    await asyncio.to_thread(context.servers.check_standby)
    await context.execute(audit.note, caller, "server.stepped-down", context.servers.own.name, "", {})
    context.servers.step_down()
    return Response(status_code=202)
