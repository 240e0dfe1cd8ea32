"""API schemas: reservations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.scheduling.reservations import ReservationView as ReservationFacts
from corral.control.scheduling.reserved_gpus import ReservationDraft
from corral.server.schemas.base import Body, Label, Moment, Text, View, rfc3339, rfc3339_or_none
from corral.server.schemas.fleet.pools import MAX_GPUS, GpuIds, UserNames

Note = Annotated[Text, Field(max_length=1000)]
Count = Annotated[int, Field(ge=1, le=MAX_GPUS)]


class ReservationCreate(Body):
    name: Label
    pool: Label
    gpus: Count | None = Field(default=None, description="Number of GPUs; corral chooses them, whole nodes first.")
    gpu_ids: GpuIds | None = Field(default=None, description="Or the ids of the GPUs.")
    model: Label | None = Field(default=None, description="Model of the GPUs; left out: the model with most free GPUs.")
    users: UserNames = Field(default_factory=list)
    groups: UserNames = Field(default_factory=list)
    since: Moment | None = Field(default=None, description="Left out, or in the past: now.")
    until: Moment | None = Field(default=None, description="Left out: the reservation lasts until it is deleted.")
    lends: bool = Field(
        default=True, description="Whether preemptible jobs of others may use GPUs that the owners do not use."
    )
    note: Note = ""


class ReservationEdit(Body):
    gpus: Count | None = None
    gpu_ids: GpuIds | None = None
    model: Label | None = None
    users: UserNames | None = None
    groups: UserNames | None = None
    since: Moment | None = None
    until: Moment | None = Field(
        default=None, description="Null: the reservation lasts until it is deleted; left out: unchanged."
    )
    lends: bool | None = None
    note: Note | None = None


class ReservationView(View):
    name: str
    pool: str
    model: str
    gpus: list[str]
    nodes: dict[str, list[str]] = Field(description="The GPUs by node; GPUs that are not present now are under ''.")
    gpu_count: int
    users: list[str]
    groups: list[str]
    since: str
    until: str | None = Field(description="Null if the reservation has no end.")
    lends: bool
    note: str
    state: Literal["upcoming", "active", "standing", "over"]
    in_force: bool = Field(
        description="False once the reservation is over, and for a standing one if the strategy is dynamic."
    )
    used_by_owners: int = Field(description="GPUs that owners hold now.")
    lent: int = Field(description="GPUs that others hold within the window now.")
    created_by: str
    created_at: str


def draft_of(body: ReservationCreate | ReservationEdit) -> ReservationDraft:
    return ReservationDraft(
        count=body.gpus,
        gpu_ids=None if body.gpu_ids is None else tuple(body.gpu_ids),
        model=body.model,
        users=None if body.users is None else tuple(body.users),
        groups=None if body.groups is None else tuple(body.groups),
        since=body.since,
        sets_until="until" in body.model_fields_set,
        until=body.until,
        lends=body.lends,
        note=body.note,
    )


def reservation_view(facts: ReservationFacts) -> ReservationView:
    record, reservation = facts.record, facts.record.reservation
    return ReservationView(
        name=reservation.name,
        pool=reservation.pool,
        model=record.model,
        gpus=list(reservation.gpus),
        nodes={node: list(gpus) for node, gpus in facts.nodes.items()},
        gpu_count=len(reservation.gpus),
        users=list(reservation.users),
        groups=list(reservation.groups),
        since=rfc3339(reservation.since),
        until=rfc3339_or_none(reservation.until),
        lends=reservation.lends,
        note=record.note,
        state=facts.state.value,
        in_force=facts.in_force,
        used_by_owners=facts.used_by_owners,
        lent=facts.lent,
        created_by=record.created_by,
        created_at=rfc3339(record.created_at),
    )
