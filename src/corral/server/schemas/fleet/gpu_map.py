"""API schemas: all GPUs at a glance: columns instead of objects, since it is fetched every few seconds."""

from __future__ import annotations

from pydantic import Field

from corral.core.model import GpuHealth, NodeState
from corral.server.schemas.base import View


class MapNodeView(View):
    id: str
    state: NodeState
    cluster: str


class GpuColumns(View):
    """Every list has one item per GPU. `node`, `model`, `pool` and `owner` are indexes into the lists of names."""

    id: list[str]
    node: list[int]
    index: list[int]
    model: list[int]
    pool: list[int]
    health: list[GpuHealth]
    allocated: list[float] = Field(description="Share of the GPU that jobs hold, 0 to 1.")
    owner: list[int | None] = Field(
        description="Owner of the job that holds the largest share; null if no job holds it."
    )
    job: list[str | None] = Field(description="Id of the job, if the caller may see it.")
    utilization: list[float | None]
    memory: list[float | None] = Field(description="Share of the GPU's memory in use, 0 to 1.")
    temperature: list[float | None] = Field(description="Celsius.")
    power: list[float | None] = Field(description="Watts.")
    taken: list[bool] = Field(description="The GPU is used outside of corral.")
    free: list[bool] = Field(description="A job could start on the GPU now.")
    stale: list[bool] = Field(description="The GPU was never read, or its last reading is too old.")


class GpuMapView(View):
    """Measured values are null if the device does not report them."""

    at: str
    nodes: list[MapNodeView]
    models: list[str]
    owners: list[str]
    pools: list[str]
    gpus: GpuColumns
    next_pools: dict[str, str] = Field(
        description="By id of a GPU that moves when its jobs have ended: the name of the pool that it moves to."
    )
    next_cursor: str | None = Field(description="Null on the last page.")
