"""Reservations and drain previews, as the server shows them."""

from __future__ import annotations

from typing import TypedDict


class ReservationView(TypedDict):
    name: str
    pool: str
    model: str
    gpus: list[str]
    #: its GPUs by node; those that are not there now are under ""
    nodes: dict[str, list[str]]
    gpu_count: int
    users: list[str]
    groups: list[str]
    since: str
    #: None while it stands
    until: str | None
    lends: bool
    note: str
    #: upcoming, active, standing or over
    state: str
    in_force: bool
    used_by_owners: int
    lent: int
    created_by: str
    created_at: str


class SpanView(TypedDict):
    p50: str
    p90: str


class DisplacedJobView(TypedDict):
    id: str
    name: str
    user: str
    gpus: list[str]
    gpu_count: int
    ends_at: SpanView | None
    limit_at: str | None
    #: surely, likely, possibly or no
    displaced: str
    lost_gpu_seconds: float
    preemptible: bool
    goes_to: list[str] | None
    back_at: str | None


class StrandedView(TypedDict):
    id: str
    name: str
    user: str
    detail: str


class CapacityView(TypedDict):
    gpus: int
    free: int


class DrainPreviewView(TypedDict):
    node: str
    at: str
    empty_at: SpanView | None
    jobs: list[DisplacedJobView]
    stranded: list[StrandedView]
    capacity_after: dict[str, CapacityView]
