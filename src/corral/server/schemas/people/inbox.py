"""API schemas: the inbox."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from corral.control.people.user_inbox import KINDS, InboxKind, InboxPage, InboxState
from corral.control.records import EventRecord, PersonalChannelKind, PersonalChannelRecord
from corral.server.schemas.base import Body, Label, Text, View, rfc3339, rfc3339_or_none


class InboxItemView(View):
    id: int
    at: str
    kind: InboxKind
    action: str = Field(description="The event, as in the audit log.")
    subject: str
    name: str = Field(description="Name of the job, volume or dataset; empty if it has none or is gone.")
    text: str = Field(description="The message of the event; empty if it has none.")
    receipt: int | None = Field(description="Receipt of a preemption or move.")
    expected_at: str | None = Field(description="The new expected start, if the item is about a changed estimate.")
    read: bool


class InboxView(View):
    items: list[InboxItemView]
    next_cursor: str | None
    unread: int
    muted: list[str] = Field(description="Kinds that the user does not want.")


class InboxStateView(View):
    read_until: int
    muted: list[str]


class InboxRead(Body):
    until: Annotated[int, Field(ge=0, le=2**53)] = Field(description="Id of the newest item that was read.")


class InboxSettings(Body):
    muted: Annotated[list[str], Field(max_length=len(InboxKind))] = Field(
        description=f"Any of: {', '.join(InboxKind)}."
    )


Kinds = Annotated[list[str], Field(max_length=len(InboxKind))]
KINDS_TEXT = f"Any of: {', '.join(InboxKind)}. Empty: everything that the inbox shows."
Code = Annotated[Text, Field(min_length=1, max_length=20)]


class InboxChannelView(View):
    """Where items of the caller's inbox are also sent. The address is stored, but never returned whole."""

    name: str
    kind: PersonalChannelKind
    address: str = Field(description="The address without its secrets.")
    kinds: list[str] = Field(description=KINDS_TEXT)
    enabled: bool
    confirmed: bool = Field(description="False until the code that was mailed to the address is typed.")
    created_at: str
    sent_at: str | None
    error: str = Field(description="Why the last message was not accepted; empty if it was.")


class InboxChannelsView(View):
    items: list[InboxChannelView]
    allowed: list[PersonalChannelKind] = Field(description="The kinds of channels that operators allow.")


class InboxChannelCreate(Body):
    name: Label
    kind: PersonalChannelKind = Field(strict=False)
    address: Annotated[Text, Field(min_length=1, max_length=2000)] = Field(
        description="A mail address, or the https URL of a chat's webhook. Stored encrypted and never shown again."
    )
    kinds: Kinds = Field(default_factory=list, description=KINDS_TEXT)


class InboxChannelEdit(Body):
    """Fields that are left out keep their values."""

    kinds: Kinds = Field(default_factory=list, description=KINDS_TEXT)
    enabled: bool = True


class InboxChannelCode(Body):
    code: Code = Field(description="The code that was mailed to the address.")


def inbox_channel_view(channel: PersonalChannelRecord) -> InboxChannelView:
    return InboxChannelView(
        name=channel.name,
        kind=channel.kind,
        address=channel.shown,
        kinds=list(channel.kinds),
        enabled=channel.enabled,
        confirmed=channel.is_confirmed,
        created_at=rfc3339(channel.created_at),
        sent_at=rfc3339_or_none(channel.sent_at),
        error=channel.error,
    )


def inbox_view(found: InboxPage) -> InboxView:
    return InboxView(
        items=[_item(event, found) for event in found.events.items],
        next_cursor=found.events.next_cursor,
        unread=found.unread,
        muted=list(found.state.muted),
    )


def inbox_state_view(state: InboxState) -> InboxStateView:
    return InboxStateView(read_until=state.read_until, muted=list(state.muted))


def _item(event: EventRecord, found: InboxPage) -> InboxItemView:
    detail: dict[str, Any] = dict(event.detail)
    return InboxItemView(
        id=event.id,
        at=rfc3339(event.at),
        kind=KINDS[event.action],
        action=event.action,
        subject=event.subject,
        name=found.names.get(event.subject, "") or str(detail.get("name", "")),
        text=str(detail.get("message") or detail.get("text") or ""),
        receipt=detail.get("receipt"),
        expected_at=rfc3339(detail["expected_at"]) if "expected_at" in detail else None,
        read=event.id <= found.state.read_until,
    )
