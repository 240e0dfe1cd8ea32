"""Users: operators' business."""

from __future__ import annotations

from fastapi import Response

from corral.control import people
from corral.control.records import Role
from corral.server.auth.callers import Context, Operator
from corral.server.auth.passwords import refusal_of
from corral.server.context import ServerContext
from corral.server.paging import Cursor, Limit, page_of
from corral.server.problems import invalid_field
from corral.server.routing import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people import (
    UserCreate,
    UserEdit,
    UserView,
    user_view,
)

router = resource_router("/users", "users")


@router.get("", operation_id="list_users", responses=problems(403))
async def list_users(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[UserView]:
    users = await context.read(lambda tables: tables.people.users())
    return page_of([user_view(user) for user in users], key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("", status_code=201, operation_id="create_user", responses=problems(403, 409))
async def create_user(body: UserCreate, caller: Operator, context: Context) -> UserView:
    """Without a password the user cannot sign in until an operator sets one."""
    hashed = await _hashed(context, body.password)
    role = Role(body.role) if body.role is not None else None
    return user_view(await context.execute(people.create_user, caller, body.name, role=role, password_hash=hashed))


@router.get("/{name}", operation_id="get_user", responses=problems(403, 404))
async def get_user(name: str, caller: Operator, context: Context) -> UserView:
    return user_view(await context.read(people.existing, name))


@router.patch("/{name}", operation_id="edit_user", responses=problems(403, 404, 409))
async def edit_user(name: str, body: UserEdit, caller: Operator, context: Context) -> UserView:
    """A disabled user is signed out everywhere at once; a new password is for one use."""
    hashed = await _hashed(context, body.password)
    user = await context.execute(
        people.edit_user,
        caller,
        name,
        role=Role(body.role) if body.role is not None else None,
        disabled=body.disabled,
        password_hash=hashed,
    )
    context.identities.forget(name)
    return user_view(user)


@router.delete("/{name}", status_code=204, operation_id="delete_user", responses=problems(403, 404, 409))
async def delete_user(name: str, caller: Operator, context: Context) -> Response:
    await context.execute(people.delete_user, caller, name)
    context.identities.forget(name)
    return Response(status_code=204)


async def _hashed(context: ServerContext, password: str | None) -> str | None:
    if password is None:
        return None
    refused = refusal_of(password)
    if refused is not None:
        raise invalid_field("password", refused)
    return await context.passwords.hash(password)
