"""Queues on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from corral.core.model import Blocking, JobKind, Queue
from corral.core.ordering import POLICIES as ORDERING_POLICIES
from corral.core.placement import POLICIES as PLACEMENT_POLICIES
from corral.server.schemas.base import Body, Duration, Name, View
from corral.server.validation import unknown_name

MAX_GPUS = 1_000_000


def _ordering(name: str) -> str:
    if name not in ORDERING_POLICIES:
        raise ValueError(f"{name!r}: {unknown_name(name, ORDERING_POLICIES, what='ordering policy')}")
    return name


def _placement(name: str) -> str:
    if name not in PLACEMENT_POLICIES:
        raise ValueError(f"{name!r}: {unknown_name(name, PLACEMENT_POLICIES, what='placement policy')}")
    return name


GpuCount = Annotated[int, Field(ge=0, le=MAX_GPUS)]
Kinds = list[Literal["workbench", "training", "distributed", "preset"]]


class QueueEdit(Body):
    """What may be changed about a queue; what is left out stays as it is, null takes a limit away."""

    policy: Annotated[str, AfterValidator(_ordering)] = "fair-share"
    blocking: Literal["strict", "backfill"] = "backfill"
    placement: Annotated[str, AfterValidator(_placement)] = "pack"
    weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    guaranteed_gpus: GpuCount = 0
    max_gpus: GpuCount | None = None
    max_length: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    max_seconds: Annotated[Duration, Field(gt=0)] | None = None
    kinds: Kinds = []
    min_job_gpus: GpuCount | None = None
    max_job_gpus: GpuCount | None = None


class QueueCreate(QueueEdit):
    name: Name
    pool: Name = "default"


class QueueView(View):
    name: str
    pool: str
    policy: str
    blocking: Blocking
    placement: str
    weight: float
    guaranteed_gpus: int
    max_gpus: int | None
    max_length: int | None
    max_seconds: float | None
    kinds: list[JobKind]
    min_job_gpus: int | None
    max_job_gpus: int | None
    running: int
    queued: int
    held_gpus: float


class OrderedJobView(View):
    position: int
    id: str
    name: str
    user: str
    gpus: float
    nodes: int
    priority: int
    pinned: bool
    score: float | None
    detail: str
    planned_start: str | None


class LineView(View):
    """Jobs that wait for the same: one GPU model, on one node or as a gang."""

    model: str
    line: Literal["single", "gang"]
    jobs: list[OrderedJobView]


class OrderView(View):
    lines: list[LineView]


def changes_of(body: QueueEdit) -> dict[str, Any]:
    """The fields that were given, as the model has them."""
    changes = body.model_dump(exclude_unset=True)
    if "blocking" in changes:
        changes["blocking"] = Blocking(changes["blocking"])
    if "kinds" in changes:
        changes["kinds"] = tuple(JobKind(kind) for kind in changes["kinds"])
    return changes


def queue_of(body: QueueCreate) -> Queue:
    return Queue(**changes_of(body))
