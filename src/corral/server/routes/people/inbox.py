"""The caller's inbox."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from corral.control.people import user_inbox as inbox
from corral.control.people.user_inbox import InboxKind
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.paging import Cursor, Limit
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.people.inbox import (
    InboxRead,
    InboxSettings,
    InboxStateView,
    InboxView,
    inbox_state_view,
    inbox_view,
)

router = resource_router("/me/inbox", "me")


@router.get("", operation_id="get_inbox", responses=problems())
async def get_inbox(
    caller: AnyCaller,
    context: Context,
    unread: Annotated[bool, Query(description="Only items that were not read yet.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> InboxView:
    """List events of the caller's jobs, volumes and shares that others caused, newest first."""
    try:
        found = await context.read(
            lambda tables: inbox.page(tables, caller.name, unread_only=unread, cursor=cursor, limit=limit)
        )
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    return inbox_view(found)


@router.post("/read", operation_id="read_inbox", responses=problems(403))
async def read_inbox(body: InboxRead, caller: AnyCaller, context: Context) -> InboxStateView:
    """Mark items as read, up to this one."""
    return inbox_state_view(await context.execute(inbox.mark_read, caller, body.until))


@router.put("/settings", operation_id="set_inbox_settings", responses=problems(403))
async def set_inbox_settings(body: InboxSettings, caller: AnyCaller, context: Context) -> InboxStateView:
    """Set the kinds of events that are left out of the caller's inbox."""
    try:
        kinds = [InboxKind(word) for word in body.muted]
    except ValueError:
        raise invalid_field("muted", f"must be any of: {', '.join(InboxKind)}") from None
    return inbox_state_view(await context.execute(inbox.mute, caller, kinds))
