"""Channels and what was sent to them, for operators."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Path, Query, Response

from corral.control.alerts import channels
from corral.control.errors import Invalid
from corral.control.ports import NoticeRefused
from corral.control.records import ChannelRecord, DeliveryState
from corral.core.alerts.model import Severity
from corral.server.auth.callers import Context, Operator
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.alerts.channels import (
    ChannelCreate,
    ChannelEdit,
    ChannelView,
    DeliveryView,
    channel_view,
    delivery_view,
)
from corral.server.schemas.base import ListView
from corral.telemetry.notices import AppriseNotifier

router = resource_router("", "channels")

#: How long a request waits for a test notice; after that, the delivery's present state is returned.
TEST_SECONDS = 25.0
_LOOK_SECONDS = 0.1


@router.get("/channels", operation_id="list_channels", responses=problems(403))
async def list_channels(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ChannelView]:
    """All channels, with the result of their latest notice; addresses are never shown."""
    found = await context.read(lambda tables: tables.channels.all())
    return page_of([channel_view(item) for item in found], key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("/channels", status_code=201, operation_id="create_channel", responses=problems(403, 409, 503))
async def create_channel(body: ChannelCreate, caller: Operator, context: Context) -> ChannelView:
    """Create a channel for notices. The address is stored encrypted and never shown again."""
    values = await _values(context, body.model_dump())
    return channel_view(await context.execute(channels.create, caller, ChannelRecord(**values)))


@router.get("/channels/{name}", operation_id="get_channel", responses=problems(403, 404))
async def get_channel(name: str, caller: Operator, context: Context) -> ChannelView:
    """One channel, without its address."""
    return channel_view(await context.read(channels.existing, name))


@router.patch("/channels/{name}", operation_id="edit_channel", responses=problems(403, 404, 409, 503))
async def edit_channel(name: str, body: ChannelEdit, caller: Operator, context: Context) -> ChannelView:
    """Change the given fields; the address is kept unless a new one is given."""
    values = await _values(context, body.model_dump(include=body.model_fields_set))
    return channel_view(await context.execute(channels.edit, caller, name, values))


@router.delete("/channels/{name}", status_code=204, operation_id="delete_channel", responses=problems(403, 404, 409))
async def delete_channel(name: str, caller: Operator, context: Context) -> Response:
    """Delete a channel. Its deliveries stay recorded."""
    await context.execute(channels.delete, caller, name)
    return Response(status_code=204)


@router.post("/channels/{name}/test", operation_id="test_channel", responses=problems(403, 404))
async def test_channel(name: str, caller: Operator, context: Context) -> DeliveryView:
    """Send a test notice and wait for the result; it is tried once."""
    delivery = await context.execute(channels.test, caller, name)
    for _ in range(round(TEST_SECONDS / _LOOK_SECONDS)):
        seen = await context.read(lambda tables: tables.channels.delivery(delivery.id))
        if seen is not None and seen.state is not DeliveryState.WAITING:
            return delivery_view(seen)
        await asyncio.sleep(_LOOK_SECONDS)
    return delivery_view(delivery)


@router.get("/deliveries", operation_id="list_deliveries", responses=problems(403))
async def list_deliveries(
    caller: Operator,
    context: Context,
    channel: Annotated[str | None, Query(min_length=1, max_length=253)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[DeliveryView]:
    """Notices that were sent, wait to be sent, or failed for good; newest first."""
    try:
        page = await context.read(lambda tables: tables.channels.deliveries(channel, cursor=cursor, limit=limit))
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    return ListView(items=[delivery_view(item) for item in page.items], next_cursor=page.next_cursor)


@router.post("/deliveries/{delivery}/resend", operation_id="resend_delivery", responses=problems(403, 404, 409))
async def resend_delivery(delivery: Annotated[int, Path(ge=1)], caller: Operator, context: Context) -> DeliveryView:
    """Try a notice that failed for good again, from the beginning."""
    return delivery_view(await context.execute(channels.resend, caller, delivery))


async def _values(context: ServerContext, given: dict[str, Any]) -> dict[str, Any]:
    """Fields of a channel, with the address checked and encrypted."""
    values = dict(given)
    if "min_severity" in values:
        values["min_severity"] = Severity(values["min_severity"])
    if "url" in values:
        # Loading the module of a service for the first time takes a moment.
        values["url"], values["shown"] = await asyncio.to_thread(_locked, context, values["url"])
    return values


def _locked(context: ServerContext, url: str) -> tuple[str, str]:
    try:
        shown = AppriseNotifier().shown(url)
        return context.box.encrypt(url), shown
    except NoticeRefused as refused:
        raise Invalid(str(refused), field="url") from None
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None
