"""API schemas: pools and groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from corral.control.fleet.node_views import GpuView as GpuFacts
from corral.control.fleet.pools import PoolView as PoolFacts
from corral.control.live.unit_of_work import Caller
from corral.control.people.groups import GroupChange
from corral.control.people.groups import GroupView as GroupFacts
from corral.control.people.quotas import GpuUse
from corral.core.model import WHOLE
from corral.server.schemas.base import Body, Label, Number, Text, View, number, rfc3339
from corral.server.schemas.fleet.nodes import GpuView, Measured, gpu_view

MAX_GPUS = 100_000
MAX_USERS = 10_000

Description = Annotated[Text, Field(max_length=1000)]
GpuIds = Annotated[list[Label], Field(max_length=MAX_GPUS)]
UserNames = Annotated[list[Label], Field(max_length=MAX_USERS)]


class PoolCreate(Body):
    name: Label
    description: Description = ""
    gpus: GpuIds = Field(
        default_factory=list, description="Ids of GPUs of one model; they are removed from their present pool."
    )


class PoolEdit(Body):
    description: Description | None = None
    gpus: GpuIds | None = Field(
        default=None, description="The complete list of GPUs; GPUs that are not listed move to the pool default."
    )


class GpuMove(Body):
    gpus: Annotated[list[Label], Field(min_length=1, max_length=MAX_GPUS)]
    when_free: bool = Field(
        default=False,
        description="GPUs with running jobs take no new jobs, and move when these have ended. Without it, a GPU with a "
        "running job refuses the move.",
    )


class PoolView(View):
    name: str
    description: str
    model: str | None = Field(description="Null if the pool is empty or has several models (default only).")
    gpus_total: int
    gpus_free: int
    gpus_allocated: Number
    group: str | None
    queues: list[str]
    running: int
    queued: int
    created_at: str


class PoolDetailView(PoolView):
    gpus: list[GpuView]


_GPU_LIST = TypeAdapter(list[GpuView])
#: GPUs that are written at once: it takes a few milliseconds.
_PART_GPUS = 200


class GroupCreate(Body):
    name: Label
    description: Description = ""
    users: UserNames = Field(default_factory=list, description="Users who are in no group.")
    pool: Label | None = None


class GroupEdit(Body):
    description: Description | None = None
    add_users: UserNames = Field(default_factory=list)
    remove_users: UserNames = Field(default_factory=list)
    move_users: UserNames = Field(default_factory=list, description="Users who leave their present group for this one.")
    pool: Label | None = Field(default=None, description="Null detaches the pool; left out: unchanged.")


class GroupView(View):
    name: str
    description: str
    pool: str | None
    users: list[str]
    users_count: int
    gpus_held: Number = Field(description="GPUs that jobs of these users hold.")
    gpus_asked: Number = Field(description="GPUs that waiting jobs of these users request.")
    created_at: str


def pool_view(facts: PoolFacts) -> PoolView:
    return PoolView(
        name=facts.record.name,
        description=facts.record.description,
        model=facts.model,
        gpus_total=facts.gpus,
        gpus_free=facts.free_gpus,
        gpus_allocated=number(facts.held_milli / WHOLE),
        group=facts.group,
        queues=list(facts.queues),
        running=facts.running,
        queued=facts.queued,
        created_at=rfc3339(facts.record.created_at),
    )


def pool_detail_json(facts: PoolFacts, gpus: Sequence[GpuFacts], measured: Measured, caller: Caller) -> bytes:
    """JSON of a `PoolDetailView`, written in parts: other threads go on between them. `gpus` are those of the pool,
    with the jobs on them."""
    parts = []
    for begin in range(0, len(gpus), _PART_GPUS):
        views = [gpu_view(gpu, measured, caller) for gpu in gpus[begin : begin + _PART_GPUS]]
        parts.append(_GPU_LIST.dump_json(views)[1:-1])
    return pool_view(facts).model_dump_json().encode()[:-1] + b',"gpus":[' + b",".join(parts) + b"]}"


def pool_short_json(facts: PoolFacts, gpus: Iterable[GpuFacts]) -> bytes:
    """The same with the ids of the GPUs only."""
    ids = [{"id": gpu.gpu.id} for gpu in gpus]
    return to_json({**pool_view(facts).model_dump(), "gpus": ids})


def change_of(body: GroupEdit) -> GroupChange:
    return GroupChange(
        description=body.description,
        add_users=tuple(body.add_users),
        remove_users=tuple(body.remove_users),
        move_users=tuple(body.move_users),
        sets_pool="pool" in body.model_fields_set,
        pool=body.pool,
    )


def group_view(facts: GroupFacts, gpus: GpuUse) -> GroupView:
    return GroupView(
        name=facts.record.name,
        description=facts.record.description,
        pool=facts.record.pool,
        users=list(facts.users),
        users_count=len(facts.users),
        gpus_held=number(gpus.held_milli / WHOLE),
        gpus_asked=number(gpus.asked_milli / WHOLE),
        created_at=rfc3339(facts.record.created_at),
    )
