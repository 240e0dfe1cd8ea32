"""API schemas: channels and deliveries. An address is accepted, but never returned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from corral.control.records import ChannelRecord, DeliveryRecord, DeliveryState
from corral.server.schemas.base import Body, Label, Text, View, rfc3339, rfc3339_or_none

SeverityWord = Literal["info", "warning", "critical"]
Address = Annotated[
    Text,
    Field(min_length=1, max_length=2000, description="An Apprise URL. Stored encrypted and never shown again."),
]
ShortDescription = Annotated[Text, Field(max_length=500)]


class ChannelView(View):
    name: str
    address: str = Field(description="The address without its secrets.")
    enabled: bool
    min_severity: SeverityWord
    description: str
    from_config: bool = Field(
        description="The channel is defined in the configuration file and can only be changed there."
    )
    created_at: str


class ChannelCreate(Body):
    name: Label
    url: Address
    enabled: bool = True
    min_severity: SeverityWord = "info"
    description: ShortDescription = ""


class ChannelEdit(Body):
    """Fields that are left out keep their values, the address too."""

    url: Address = ""
    enabled: bool = True
    min_severity: SeverityWord = "info"
    description: ShortDescription = ""


class DeliveryView(View):
    """One notice to one channel."""

    id: int
    channel: str
    kind: str
    title: str
    body: str
    alerts: list[int]
    attachments: list[str]
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    error: str = Field(description="Error of the last try; empty if it succeeded.")
    created_at: str
    next_try_at: str | None
    sent_at: str | None


def channel_view(channel: ChannelRecord) -> ChannelView:
    return ChannelView(
        name=channel.name,
        address=channel.shown,
        enabled=channel.enabled,
        min_severity=channel.min_severity.value,
        description=channel.description,
        from_config=channel.from_config,
        created_at=rfc3339(channel.created_at),
    )


def delivery_view(delivery: DeliveryRecord) -> DeliveryView:
    is_waiting = delivery.state is DeliveryState.WAITING
    return DeliveryView(
        id=delivery.id,
        channel=delivery.channel,
        kind=delivery.kind,
        title=delivery.title,
        body=delivery.body,
        alerts=list(delivery.alert_ids),
        attachments=[Path(path).name for path in delivery.attachments],
        state=delivery.state.value,
        attempts=delivery.attempts,
        error=delivery.error,
        created_at=rfc3339(delivery.created_at),
        next_try_at=rfc3339(delivery.next_try_at) if is_waiting else None,
        sent_at=rfc3339_or_none(delivery.sent_at),
    )
