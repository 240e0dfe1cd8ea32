"""API schemas: the inbox."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from corral.control.people.user_inbox import KINDS, InboxKind, InboxPage, InboxState
from corral.control.records import EventRecord
from corral.server.schemas.base import Body, View, rfc3339


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
