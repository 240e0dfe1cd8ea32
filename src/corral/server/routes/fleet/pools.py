"""Pools of GPUs, and their use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import Response

from corral.control.fleet import pools
from corral.control.fleet.node_views import GpuView
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import PoolRecord
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.preconditions import LongObject
from corral.server.http.problems import showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.fleet.nodes import measured_now
from corral.server.schemas.base import ListView
from corral.server.schemas.fleet.pools import (
    GpuMove,
    PoolCreate,
    PoolDetailView,
    PoolEdit,
    PoolView,
    pool_detail_json,
    pool_short_json,
    pool_view,
)

router = resource_router("/pools", "pools")


@router.get("", operation_id="list_pools", responses=problems())
async def list_pools(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[PoolView]:
    """All pools with their GPUs, groups and what is free."""
    owned = await context.read(pools.pool_owners)
    page = page_of(owned, key=lambda item: (item[0].name,), limit=limit, cursor=cursor)
    found = await context.inspect(pools.pool_views, page.items, context.clock.now())
    return ListView(items=[pool_view(facts) for facts in found], next_cursor=page.next_cursor)


@router.post(
    "", status_code=201, operation_id="create_pool", response_model=PoolDetailView, responses=problems(403, 409)
)
async def create_pool(body: PoolCreate, caller: Operator, context: Context) -> Response:
    """Create a pool, with a queue of the same name. Its GPUs are removed from their present pools."""
    await context.execute(pools.create, caller, body.name, description=body.description, gpus=body.gpus)
    with showing_new():
        return await _shown(context, body.name, caller, status=201)


@router.get("/{name}", operation_id="get_pool", response_model=PoolDetailView, responses=problems(404))
async def get_pool(name: str, caller: AnyCaller, context: Context) -> Response:
    """A pool with its GPUs and the jobs on them."""
    return await _shown(context, name, caller)


@router.patch("/{name}", operation_id="edit_pool", response_model=PoolDetailView, responses=problems(403, 404, 409))
async def edit_pool(name: str, body: PoolEdit, caller: Operator, context: Context) -> Response:
    """Change the description, or replace the list of GPUs. A GPU with a running job cannot be moved."""
    await context.execute(pools.edit, caller, name, description=body.description, gpus=body.gpus)
    return await _shown(context, name, caller)


@router.post("/{name}/gpus", operation_id="move_gpus", response_model=PoolDetailView, responses=problems(403, 404, 409))
async def move_gpus(name: str, body: GpuMove, caller: Operator, context: Context) -> Response:
    """Move these GPUs into the pool from their present pools: all of them or none. With `when_free`, GPUs with running
    jobs follow when these have ended. A GPU that is in the pool, and was to leave it, stays."""
    await context.execute(pools.move_gpus, caller, name, body.gpus, when_free=body.when_free)
    return await _shown(context, name, caller)


@router.delete("/{name}", status_code=204, operation_id="delete_pool", responses=problems(403, 404, 409))
async def delete_pool(name: str, caller: Operator, context: Context) -> Response:
    """Delete a pool. Its GPUs move to the pool default and its queues are deleted; jobs that wait in them stay, and
    show that their queue was deleted."""
    await context.execute(pools.delete, caller, name)
    return Response(status_code=204)


async def _shown(context: ServerContext, name: str, caller: Caller, status: int = 200) -> Response:
    owned = await context.read(_owned, name)
    facts, gpus = await context.inspect(_with_gpus, [owned], context.clock.now())
    # On a thread: a pool of a large fleet takes seconds.
    body = await context.reads.run(partial(pool_detail_json, facts, gpus, measured_now(context), caller))
    return LongObject(body, pool_short_json(facts, gpus), status)


def _owned(tables: Transaction, name: str) -> tuple[PoolRecord, str | None]:
    return pools.existing(tables, name), pools.group_of(tables, name)


def _with_gpus(
    state: State, owned: Sequence[tuple[PoolRecord, str | None]], now: float
) -> tuple[pools.PoolView, list[GpuView]]:
    [facts] = pools.pool_views(state, owned, now)
    return facts, pools.gpus_in(state, facts.record.name, now)
