"""Groups of users, each with a pool. For operators."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Response

from corral.control.errors import NotFound
from corral.control.people import groups, quotas
from corral.server.auth.callers import Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.fleet.pools import GroupCreate, GroupEdit, GroupView, change_of, group_view

router = resource_router("/groups", "groups")


@router.get("", operation_id="list_groups", responses=problems(403))
async def list_groups(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[GroupView]:
    """All groups with their pools and users."""
    found = await context.read(groups.group_views)
    page = page_of(found, key=lambda facts: (facts.record.name,), limit=limit, cursor=cursor)
    return ListView(items=await _with_gpus(context, page.items), next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="create_group", responses=problems(403, 409))
async def create_group(body: GroupCreate, caller: Operator, context: Context) -> GroupView:
    """Create a group of users who are in no group, with a pool that no group has."""
    await context.execute(
        groups.create, caller, body.name, description=body.description, users=body.users, pool=body.pool
    )
    with showing_new():
        return await _shown(context, body.name)


@router.get("/{name}", operation_id="get_group", responses=problems(403, 404))
async def get_group(name: str, caller: Operator, context: Context) -> GroupView:
    """One group with its pool and its users."""
    return await _shown(context, name)


@router.patch("/{name}", operation_id="edit_group", responses=problems(403, 404, 409))
async def edit_group(name: str, body: GroupEdit, caller: Operator, context: Context) -> GroupView:
    """Change a group; all changes are made or none. Jobs whose user has lost access to their pool wait, and show the
    reason."""
    await context.execute(groups.edit, caller, name, change_of(body))
    return await _shown(context, name)


@router.delete("/{name}", status_code=204, operation_id="delete_group", responses=problems(403, 404, 409))
async def delete_group(name: str, caller: Operator, context: Context) -> Response:
    """Delete a group without users and without a pool."""
    await context.execute(groups.delete, caller, name)
    return Response(status_code=204)


async def _shown(context: ServerContext, name: str) -> GroupView:
    for facts in await context.read(groups.group_views):
        if facts.record.name == name:
            return (await _with_gpus(context, [facts]))[0]
    raise NotFound(f"there is no group {name!r}", field="group")


async def _with_gpus(context: ServerContext, found: Sequence[groups.GroupView]) -> list[GroupView]:
    gpus = await context.inspect(quotas.gpus_of_each, [facts.users for facts in found])
    return [group_view(facts, use) for facts, use in zip(found, gpus, strict=True)]
