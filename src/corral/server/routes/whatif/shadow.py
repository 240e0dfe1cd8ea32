"""The shadow policy: a candidate that decides in parallel to the live policy, without effect. For operators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from corral.control.ports import Transaction
from corral.control.records import DifferenceRecord, ShadowRecord
from corral.control.whatif import shadow
from corral.server.auth.callers import Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.whatif.shadow import ShadowView, shadow_view
from corral.server.schemas.whatif.simulations import RuleChanges, plain_of
from corral.server.whatif.shadow_runner import ShadowProgress

router = resource_router("/shadow", "simulations")


@router.get("", operation_id="get_shadow", responses=problems(403))
async def get_shadow(
    caller: Operator,
    context: Context,
    limit: Annotated[int, Query(ge=0, le=500, description="Maximum number of listed differences.")] = 200,
) -> ShadowView:
    """The shadow policy's differences from the live one; kept after it was stopped, until the next is started."""
    return await _shown(context, limit)


@router.put("", operation_id="start_shadow", responses=problems(403))
async def start_shadow(body: RuleChanges, caller: Operator, context: Context) -> ShadowView:
    """Plan every cycle that starts a job again with other rules, and record the differences. This replaces a running
    shadow policy and its differences."""
    record = await context.execute(shadow.start, caller, plain_of(body))
    context.shadow_runner.wake()
    return shadow_view(record, ShadowProgress(), [])


@router.delete("", status_code=204, operation_id="stop_shadow", responses=problems(403, 404))
async def stop_shadow(caller: Operator, context: Context) -> Response:
    """Stop the shadow policy. What it has found stays readable."""
    await context.execute(shadow.stop, caller)
    context.shadow_runner.wake()
    return Response(status_code=204)


async def _shown(context: ServerContext, limit: int) -> ShadowView:
    def read(tables: Transaction) -> tuple[ShadowRecord | None, list[DifferenceRecord]]:
        return shadow.known(tables), tables.shadow.newest(limit)

    record, differences = await context.read(read)
    return shadow_view(record, context.shadow_runner.progress, differences)
