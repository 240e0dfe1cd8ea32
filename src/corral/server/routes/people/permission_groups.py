"""Permission groups: the functions that their users may use. For operators; users find their own functions at /me."""

from __future__ import annotations

from fastapi import Response

from corral.control.people import permissions
from corral.control.ports import Transaction
from corral.server.auth.callers import Context, Operator
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.permissions import (
    Assignment,
    PermissionGroupCreate,
    PermissionGroupEdit,
    PermissionGroupView,
    functions_of,
    permission_group_view,
)

router = resource_router("/permission-groups", "users")


@router.get("", operation_id="list_permission_groups", responses=problems(403))
async def list_permission_groups(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[PermissionGroupView]:
    """The permission groups with their rights and members."""
    found = await context.read(_views)
    return page_of(found, key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("", status_code=201, operation_id="create_permission_group", responses=problems(403, 409))
async def create_permission_group(
    body: PermissionGroupCreate, caller: Operator, context: Context
) -> PermissionGroupView:
    """Create a permission group: rights that its members have."""
    functions = functions_of(body.functions) or frozenset()
    await context.execute(permissions.create, caller, body.name, functions, body.description)
    with showing_new():
        return await context.read(_view, body.name)


@router.get("/{name}", operation_id="get_permission_group", responses=problems(403, 404))
async def get_permission_group(name: str, caller: Operator, context: Context) -> PermissionGroupView:
    """One permission group with its rights and members."""
    return await context.read(_view, name)


@router.patch("/{name}", operation_id="edit_permission_group", responses=problems(403, 404))
async def edit_permission_group(
    name: str, body: PermissionGroupEdit, caller: Operator, context: Context
) -> PermissionGroupView:
    """Change the given fields. The change applies from the next request of each user on."""
    functions = functions_of(body.functions)
    await context.execute(permissions.edit, caller, name, functions=functions, description=body.description)
    context.identities.forget_all()
    return await context.read(_view, name)


@router.post("/{name}/users", operation_id="assign_permission_group", responses=problems(403, 404))
async def assign_permission_group(
    name: str, body: Assignment, caller: Operator, context: Context
) -> PermissionGroupView:
    """Move users into this permission group, all of them or none."""
    await context.execute(permissions.assign, caller, name, body.users)
    context.identities.forget_all()
    return await context.read(_view, name)


@router.delete("/{name}", status_code=204, operation_id="delete_permission_group", responses=problems(403, 404, 409))
async def delete_permission_group(name: str, caller: Operator, context: Context) -> Response:
    """Delete a permission group. Refused while it has members."""
    await context.execute(permissions.delete, caller, name)
    context.identities.forget_all()
    return Response(status_code=204)


def _views(tables: Transaction) -> list[PermissionGroupView]:
    users: dict[str, list[str]] = {}
    for user in tables.people.users():
        users.setdefault(user.permission_group, []).append(user.name)
    return [permission_group_view(group, users.get(group.name, [])) for group in tables.people.permission_groups()]


def _view(tables: Transaction, name: str) -> PermissionGroupView:
    group = permissions.existing(tables, name)
    return permission_group_view(group, [user.name for user in tables.people.users() if user.permission_group == name])
