"""Maintenance windows on the wire."""

from __future__ import annotations

from collections.abc import Set
from typing import Annotated

from pydantic import Field

from corral.control.fleet.draining.maintenance import (
    MOST_DRAIN_SECONDS,
    MaintenanceDraft,
    MaintenanceState,
    state_of,
)
from corral.control.records import MaintenanceRecord
from corral.server.schemas.base import Body, Duration, Label, Moment, Number, Text, View, described_bounds, rfc3339

#: Nodes of one window.
MAX_NODES = 10_000

Nodes = Annotated[list[Label], Field(max_length=MAX_NODES)]
Note = Annotated[Text, Field(max_length=1000)]
EveryDays = Annotated[int, Field(ge=1, le=366)]
DrainTime = Annotated[Duration, Field(ge=0, le=MOST_DRAIN_SECONDS), described_bounds(0, MOST_DRAIN_SECONDS)]


class MaintenanceCreate(Body):
    name: Label
    nodes: Nodes
    since: Moment | None = Field(default=None, description="Time at which the nodes are to be empty; left out: now.")
    until: Moment = Field(description="Time at which the nodes take jobs again.")
    every_days: EveryDays | None = Field(
        default=None,
        description="Days until it is repeated at the same time of the day by the server's clock; left out: once.",
    )
    drain_before: DrainTime = Field(default=3600.0, description="Time before it in which the nodes take no new jobs.")
    note: Note = ""


class MaintenanceEdit(Body):
    nodes: Nodes | None = None
    since: Moment | None = None
    until: Moment | None = None
    every_days: EveryDays | None = Field(default=None, description="Null: not repeated; left out: unchanged.")
    drain_before: DrainTime | None = None
    note: Note | None = None


class MaintenanceView(View):
    name: str
    nodes: list[str]
    since: str = Field(description="Time at which the present occurrence begins, or else the next.")
    until: str
    every_days: int | None = Field(description="Days from one occurrence to the next; null if there is only one.")
    drain_before_seconds: Number
    drains_at: str = Field(description="From then on the nodes take no new jobs.")
    state: MaintenanceState
    nodes_left: list[str] = Field(description="Nodes that still have jobs.")
    note: str
    created_by: str
    created_at: str


def draft_of(body: MaintenanceCreate | MaintenanceEdit) -> MaintenanceDraft:
    return MaintenanceDraft(
        nodes=None if body.nodes is None else tuple(body.nodes),
        since=body.since,
        until=body.until,
        sets_repetition="every_days" in body.model_fields_set,
        every_days=body.every_days,
        drain_seconds=body.drain_before,
        note=body.note,
    )


def maintenance_view(record: MaintenanceRecord, busy: Set[str], now: float) -> MaintenanceView:
    return MaintenanceView(
        name=record.name,
        nodes=list(record.nodes),
        since=rfc3339(record.since),
        until=rfc3339(record.until),
        every_days=record.every_days,
        drain_before_seconds=record.drain_seconds,
        drains_at=rfc3339(record.drains_at),
        state=state_of(record, now),
        nodes_left=[node for node in record.nodes if node in busy],
        note=record.note,
        created_by=record.created_by,
        created_at=rfc3339(record.created_at),
    )
