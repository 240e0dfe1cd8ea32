"""The caller's inbox, and the channels to which it is also sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Query, Response

from corral.control.errors import Invalid
from corral.control.people import inbox_channels as channels
from corral.control.people import user_inbox as inbox
from corral.control.people.user_inbox import InboxKind
from corral.control.ports import NoticeFailed, NoticeRefused
from corral.control.records import PersonalChannelKind, PersonalChannelRecord
from corral.server.auth.callers import AnyCaller, Context
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.people.personal_sender import digest_of, new_code
from corral.server.schemas.people.inbox import (
    InboxChannelCode,
    InboxChannelCreate,
    InboxChannelEdit,
    InboxChannelsView,
    InboxChannelView,
    InboxRead,
    InboxSettings,
    InboxStateView,
    InboxView,
    inbox_channel_view,
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


@router.get("/channels", operation_id="list_inbox_channels", responses=problems())
async def list_inbox_channels(caller: AnyCaller, context: Context) -> InboxChannelsView:
    """List where the caller's inbox is also sent."""
    found = await context.read(lambda tables: tables.personal_channels.of_user(caller.name))
    return InboxChannelsView(
        items=[inbox_channel_view(channel) for channel in found], allowed=list(context.personal_sender.kinds)
    )


@router.post("/channels", status_code=201, operation_id="create_inbox_channel", responses=problems(403, 409, 503))
async def create_inbox_channel(body: InboxChannelCreate, caller: AnyCaller, context: Context) -> InboxChannelView:
    """Send new items of the caller's inbox to an address. A mail address gets a code first, which confirms it."""
    code = new_code() if body.kind is PersonalChannelKind.MAIL else ""
    # The address of a host is asked for.
    address, shown = await context.outside.call(caller.name, partial(_locked, context, body.kind, body.address))
    channel = PersonalChannelRecord(
        user=caller.name,
        name=body.name,
        kind=body.kind,
        address=address,
        shown=shown,
        kinds=tuple(body.kinds),
        code_digest=digest_of(caller.name, body.name, code) if code else "",
    )
    made = await context.execute(channels.create, caller, channel)
    return inbox_channel_view(await _mailed(context, made, code) if code else made)


@router.patch("/channels/{name}", operation_id="edit_inbox_channel", responses=problems(403, 404))
async def edit_inbox_channel(
    name: str, body: InboxChannelEdit, caller: AnyCaller, context: Context
) -> InboxChannelView:
    """Choose the kinds of items that are sent to a channel, or switch it on or off."""
    given = body.model_dump(include=body.model_fields_set)
    return inbox_channel_view(await context.execute(channels.edit, caller, name, **given))


@router.delete("/channels/{name}", status_code=204, operation_id="delete_inbox_channel", responses=problems(403, 404))
async def delete_inbox_channel(name: str, caller: AnyCaller, context: Context) -> Response:
    """Send nothing to this address any more, and forget it."""
    await context.execute(channels.delete, caller, name)
    return Response(status_code=204)


@router.post("/channels/{name}/code", operation_id="renew_inbox_channel_code", responses=problems(403, 404, 409))
async def renew_inbox_channel_code(name: str, caller: AnyCaller, context: Context) -> InboxChannelView:
    """Mail another code to an address that is not confirmed yet."""
    code = new_code()
    renewed = await context.execute(channels.renew_code, caller, name, digest_of(caller.name, name, code))
    return inbox_channel_view(await _mailed(context, renewed, code))


@router.post("/channels/{name}/confirm", operation_id="confirm_inbox_channel", responses=problems(403, 404, 409))
async def confirm_inbox_channel(
    name: str, body: InboxChannelCode, caller: AnyCaller, context: Context
) -> InboxChannelView:
    """Confirm a mail address with the code that was mailed there."""
    digest = digest_of(caller.name, name, body.code.strip())
    confirmed = await context.execute(channels.confirm, caller, name, digest)
    if confirmed is None:
        raise invalid_field("code", "this is not the code that was mailed last")
    return inbox_channel_view(confirmed)


@router.post("/channels/{name}/test", operation_id="test_inbox_channel", responses=problems(403, 404, 409))
async def test_inbox_channel(name: str, caller: AnyCaller, context: Context) -> InboxChannelView:
    """Send a test message and wait for the result, which is the channel's error; it is tried once."""
    message = await context.execute(channels.begin_test, caller, name)
    error = await _outcome(context, caller.name, partial(context.personal_sender.send, message))
    tested = await context.execute(channels.note_error, caller.name, name, error)
    return inbox_channel_view(tested or message.channel)


async def _mailed(context: ServerContext, channel: PersonalChannelRecord, code: str) -> PersonalChannelRecord:
    error = await _outcome(context, channel.user, partial(context.personal_sender.send_code, channel, code))
    return await context.execute(channels.note_error, channel.user, channel.name, error) or channel


async def _outcome(context: ServerContext, user: str, send: Callable[[], None]) -> str:
    """Why it was not sent; empty if it was."""
    try:
        await context.outside.call(user, send)
    except (NoticeFailed, NoticeRefused, SecretUnreadable) as error:
        return str(error)
    return ""


def _locked(context: ServerContext, kind: PersonalChannelKind, address: str) -> tuple[str, str]:
    """The encrypted address, and the form of it that may be shown."""
    try:
        shown = context.personal_sender.check(kind, address)
        return context.box.encrypt(address), shown
    except NoticeRefused as refused:
        raise Invalid(str(refused), field="address") from None
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None
