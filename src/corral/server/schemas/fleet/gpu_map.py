"""All GPUs at a glance, on the wire: columns instead of objects, since it is fetched every few seconds."""

from __future__ import annotations

from pydantic import Field

from corral.core.model import GpuHealth, NodeState
from corral.server.schemas.base import View


class MapNodeView(View):
    id: str
    state: NodeState
    cluster: str


class GpuColumns(View):
    """Every list has one place per GPU. `node`, `model`, `pool` and `owner` are places in the lists beside."""

    id: list[str]
    node: list[int]
    index: list[int]
    model: list[int]
    pool: list[int]
    health: list[GpuHealth]
    allocated: list[float] = Field(description="The part that jobs hold, 0 to 1.")
    owner: list[int | None] = Field(description="Whose job holds the largest part; null while it is free.")
    job: list[str | None] = Field(description="That job, where the caller may see it.")
    utilization: list[float | None]
    memory: list[float | None] = Field(description="The used part, 0 to 1.")
    temperature: list[float | None] = Field(description="Celsius.")
    power: list[float | None] = Field(description="Watts.")
    taken: list[bool] = Field(description="Others hold it, outside of corral.")
    stale: list[bool] = Field(description="Never read, or too long ago to be believed.")


class GpuMapView(View):
    """Measured values are null where the device does not tell."""

    at: str
    nodes: list[MapNodeView]
    models: list[str]
    owners: list[str]
    pools: list[str]
    gpus: GpuColumns
