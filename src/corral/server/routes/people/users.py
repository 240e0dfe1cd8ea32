"""Users, for operators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response

from corral.control.live.state import State
from corral.control.people import user_accounts
from corral.control.records import Role, UserRecord
from corral.core.people.password_rules import refusal_of
from corral.server.auth.callers import Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Filter, Limit, page_of
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.users import UserCreate, UserEdit, UserView, user_view

router = resource_router("/users", "users")


@router.get("", operation_id="list_users", responses=problems(403))
async def list_users(
    caller: Operator,
    context: Context,
    role: Role | None = None,
    group: Filter = None,
    permission_group: Filter = None,
    q: Annotated[str | None, Query(min_length=1, max_length=253, description="Text in a name or address.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[UserView]:
    """Users that match every filter, with their numbers of jobs and GPUs."""
    users = [
        user
        for user in await context.read(lambda tables: tables.people.users())
        if (role is None or user.role is role)
        and (group is None or user.group == group)
        and (permission_group is None or user.permission_group == permission_group)
        and (q is None or any(q.lower() in text.lower() for text in (user.name, user.display_name, user.email)))
    ]
    page = page_of(users, key=lambda user: (user.name,), limit=limit, cursor=cursor)
    return ListView(items=await _shown(context, page.items), next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="create_user", responses=problems(403, 404, 409))
async def create_user(body: UserCreate, caller: Operator, context: Context) -> UserView:
    """Create a user. Without a password the user cannot sign in until an operator sets one."""
    hashed = await _hashed(context, body.password)
    user = await context.execute(
        user_accounts.create_user,
        caller,
        body.name,
        role=Role(body.role) if body.role is not None else None,
        password_hash=hashed,
        group=body.group,
        permission_group=body.permission_group,
        display_name=body.display_name,
        email=body.email,
    )
    return user_view(user)


@router.get("/{name}", operation_id="get_user", responses=problems(403, 404))
async def get_user(name: str, caller: Operator, context: Context) -> UserView:
    """One user with role, group, quota and score."""
    [view] = await _shown(context, [await context.read(user_accounts.existing, name)])
    return view


@router.patch("/{name}", operation_id="edit_user", responses=problems(403, 404, 409))
async def edit_user(name: str, body: UserEdit, caller: Operator, context: Context) -> UserView:
    """Change a user. A disabled user is signed out everywhere at once; a new password can be used once."""
    hashed = await _hashed(context, body.password)
    user = await context.execute(
        user_accounts.edit_user,
        caller,
        name,
        role=Role(body.role) if body.role is not None else None,
        disabled=body.disabled,
        password_hash=hashed,
        permission_group=body.permission_group,
        display_name=body.display_name,
        email=body.email,
    )
    context.identities.forget(name)
    [view] = await _shown(context, [user])
    return view


@router.delete("/{name}", status_code=204, operation_id="delete_user", responses=problems(403, 404, 409))
async def delete_user(name: str, caller: Operator, context: Context) -> Response:
    """Delete a user without live jobs. Ended jobs, usage and the audit log stay."""
    await context.execute(user_accounts.delete_user, caller, name)
    await asyncio.to_thread(context.library.sent.forget_user, name)
    context.identities.forget(name)
    return Response(status_code=204)


async def _shown(context: ServerContext, users: Sequence[UserRecord]) -> list[UserView]:
    """Users with their numbers: one read of the state, for any number of users."""
    active = await context.inspect(_active_jobs)
    return [user_view(user, active_jobs=active[user.name]) for user in users]


def _active_jobs(state: State) -> Counter[str]:
    return Counter(job.user for job in state.snapshot.jobs.values())


async def _hashed(context: ServerContext, password: str | None) -> str | None:
    if password is None:
        return None
    refused = refusal_of(password)
    if refused is not None:
        raise invalid_field("password", refused)
    return await context.passwords.hash(password)
