"""Clusters, nodes, GPUs and what they add up to, on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from corral.control import views
from corral.control.permissions import may_see_job
from corral.control.records import EventRecord
from corral.control.work import Caller
from corral.core.model import WHOLE, GpuHealth, Job, JobState, NodeState
from corral.server.schemas.base import Number, View, number, rfc3339
from corral.telemetry.readings import LatestReading


class HolderView(View):
    """A job on a GPU or a node; of one that the caller may not see only whose it is and how large."""

    id: str | None
    name: str | None
    user: str
    gpus: Number
    state: JobState


class ReadingView(View):
    at: str
    stale: bool
    utilization: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    energy_joules: float | None


class GpuView(View):
    id: str
    index: int
    node: str
    model: str
    memory_bytes: int
    health: GpuHealth
    pool: str
    allocated: Number
    jobs: list[HolderView]
    reading: ReadingView | None


class NodeView(View):
    id: str
    cluster: str
    state: NodeState
    cpus: Number
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: Number
    gpus_allocated: Number
    gpus: list[GpuView]
    jobs: list[HolderView]


class ClusterView(View):
    name: str
    engine: str
    healthy: bool
    detail: str
    nodes: int
    gpus: int


class OverviewView(View):
    nodes: int
    gpus: int
    gpus_free: Number
    gpus_allocated: Number
    gpus_suspect: int
    gpus_failed: int
    #: whose reading is too old, or that were never read
    gpus_stale: int
    allocation: float
    utilization: float | None
    power_watts: float | None
    #: of the hottest GPU
    temperature_celsius: float | None
    jobs: dict[str, int]
    queued: int
    #: that fire, by severity
    alerts: dict[str, int]


class EventView(View):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    source: str


#: The latest reading of every GPU that was ever read.
Measured = Mapping[str, LatestReading]


def reading_view(latest: LatestReading) -> ReadingView:
    reading = latest.reading
    return ReadingView(
        at=rfc3339(reading.at),
        stale=latest.stale,
        utilization=reading.utilization,
        memory_used_bytes=reading.memory_used_bytes,
        memory_total_bytes=reading.memory_total_bytes,
        temperature_celsius=reading.temperature_celsius,
        power_watts=reading.power_watts,
        energy_joules=reading.energy_joules,
    )


def node_view(view: views.NodeView, measured: Measured, caller: Caller) -> NodeView:
    node = view.node
    return NodeView(
        id=node.id,
        cluster=node.cluster,
        state=node.state,
        cpus=number(node.cpu_milli / WHOLE),
        memory_bytes=node.memory_bytes,
        labels=dict(node.labels),
        load=node.load,
        gpus_total=len(view.gpus),
        gpus_free=view.free_gpus,
        gpus_allocated=number(sum(gpu.held_milli for gpu in view.gpus) / WHOLE),
        gpus=[gpu_view(gpu, measured, caller) for gpu in view.gpus],
        jobs=_holders(view.jobs, caller, node=node.id),
    )


def gpu_view(view: views.GpuView, measured: Measured, caller: Caller) -> GpuView:
    gpu = view.gpu
    return GpuView(
        id=gpu.id,
        index=gpu.index,
        node=view.node,
        model=gpu.model,
        memory_bytes=gpu.memory_bytes,
        health=gpu.health,
        pool=gpu.pool,
        allocated=number(view.held_milli / WHOLE),
        jobs=_holders(view.jobs, caller, gpu=gpu.id),
        reading=reading_view(measured[gpu.id]) if gpu.id in measured else None,
    )


def event_view(event: EventRecord) -> EventView:
    return EventView(
        id=event.id,
        at=rfc3339(event.at),
        actor=event.actor,
        action=event.action,
        subject=event.subject,
        detail=dict(event.detail),
        source=event.source,
    )


def _holders(
    jobs: Iterable[Job], caller: Caller, *, node: str | None = None, gpu: str | None = None
) -> list[HolderView]:
    """Each job once, with the GPUs that it holds on this node or of this GPU."""
    unique = {job.id: job for job in jobs}
    return [
        HolderView(
            id=job.id if may_see_job(caller, job.user) else None,
            name=job.name if may_see_job(caller, job.user) else None,
            user=job.user,
            gpus=number(_held_milli(job, node, gpu) / WHOLE),
            state=job.state,
        )
        for job in unique.values()
    ]


def _held_milli(job: Job, node: str | None, gpu: str | None) -> int:
    grants = job.allocation.grants if job.allocation is not None else ()
    if gpu is not None:
        return sum(grant.gpu_milli for grant in grants if gpu in grant.gpus)
    return sum(grant.total_gpu_milli for grant in grants if grant.node == node)
