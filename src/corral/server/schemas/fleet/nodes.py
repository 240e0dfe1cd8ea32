"""Clusters, nodes, GPUs and what they add up to, on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.records import EventRecord
from corral.control.scheduling import views
from corral.core.model import WHOLE, GpuHealth, Job, JobState, NodeState
from corral.core.monitoring.health.model import Evidence, Sign
from corral.server.schemas.base import Body, Number, Text, View, number, rfc3339, rfc3339_or_none
from corral.telemetry.readings import LatestHost, LatestReading


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
    power_limit_watts: float | None
    energy_joules: float | None
    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    throttle_reasons: list[str]
    ecc_corrected: int | None
    ecc_uncorrected: int | None
    remapped_rows: int | None
    remap_failed: bool | None
    processes: int = Field(description="How many processes use it.")
    lost: bool = Field(description="It was there and does not answer any more.")


class HostView(View):
    """How a node is besides its GPUs; null where it does not tell. Rates are per second."""

    at: str
    stale: bool
    cpu: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    disk_used_bytes: int | None
    disk_total_bytes: int | None
    network_receive_bytes: float | None
    network_send_bytes: float | None


class EvidenceView(View):
    sign: Sign
    at: str
    text: str
    advice: str


class GpuView(View):
    id: str
    index: int
    node: str
    cluster: str
    model: str
    memory_bytes: int
    health: GpuHealth
    health_since: str | None = Field(description="Null while it was always healthy.")
    evidence: list[EvidenceView] = Field(description="What was seen, oldest first; also of times that are over.")
    pool: str
    link_group: str = Field(description="GPUs of a node with the same name here are linked; empty while none is known.")
    allocated: Number
    taken: bool = Field(description="Others hold it, outside of corral.")
    jobs: list[HolderView]
    reading: ReadingView | None


class TakenView(View):
    """What of a node others hold, outside of corral."""

    gpus: int
    cpus: Number
    memory_bytes: int


class NodeView(View):
    id: str
    cluster: str
    state: NodeState
    withheld: NodeState = Field(description="What an operator has said: ready, cordoned or draining.")
    reason: str = Field(description="Why its engine gives it no work; empty where it does not tell.")
    cpus: Number
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: Number
    gpus_allocated: Number
    taken: TakenView
    gpus: list[GpuView]
    jobs: list[HolderView]
    host: HostView | None = None


class GpuMark(Body):
    """An operator's word about a GPU."""

    health: Annotated[Literal["suspect", "failed"], Field(description="Suspect: no new work. Failed: its jobs move.")]
    reason: Annotated[Text, Field(min_length=1, max_length=500)]


class ClusterView(View):
    name: str
    engine: str
    healthy: bool
    detail: str = Field(description="What is wrong, in the words of its engine; empty while it answers.")
    observed_at: str | None = Field(description="When it was last asked; null before the first time.")
    since: str | None = Field(description="Since when it answers, or does not, as far as this server has seen.")
    nodes: int
    nodes_ready: int
    gpus: int
    gpus_free: int
    gpus_taken: int = Field(description="Held by others, outside of corral.")
    gpu_types: dict[str, str] = Field(description="Models of GPUs by what its own scheduler calls them, as far as set.")


class OverviewView(View):
    """The installation in a few numbers; what nobody tells is null, not zero."""

    nodes: int
    nodes_by_state: dict[str, int]
    gpus: int
    gpus_free: Number
    gpus_allocated: Number
    gpus_taken: int = Field(description="Held by others, outside of corral.")
    gpus_suspect: int
    gpus_failed: int
    #: whose reading is too old, or that were never read
    gpus_stale: int
    allocation: float
    utilization: float | None
    idle_gpus: int = Field(description="Held by jobs, and not used at this moment.")
    power_watts: float | None
    power_limit_watts: float | None = Field(description="What the GPUs that tell may draw together.")
    #: of the hottest GPU
    temperature_celsius: float | None
    temperature_mean_celsius: float | None
    cpu: float | None = Field(description="Mean use of the CPUs of the nodes that tell, 0 to 1.")
    memory_used_bytes: int | None = Field(description="Of the nodes that tell, as the total.")
    memory_total_bytes: int | None
    jobs: dict[str, int] = Field(description="By state; of one cluster without those that have ended.")
    running: int
    queued: int
    wait_seconds_median: float | None = Field(description="How long what waits now has waited so far.")
    wait_seconds_max: float | None
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
NO_HOSTS: Mapping[str, LatestHost] = {}


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
        power_limit_watts=reading.power_limit_watts,
        energy_joules=reading.energy_joules,
        sm_clock_mhz=reading.sm_clock_mhz,
        memory_clock_mhz=reading.memory_clock_mhz,
        throttle_reasons=list(reading.throttle_reasons),
        ecc_corrected=reading.ecc_corrected,
        ecc_uncorrected=reading.ecc_uncorrected,
        remapped_rows=reading.remapped_rows,
        remap_failed=reading.remap_failed,
        processes=len(reading.processes),
        lost=reading.lost,
    )


def host_view(latest: LatestHost) -> HostView:
    reading = latest.reading
    return HostView(
        at=rfc3339(reading.at),
        stale=latest.stale,
        cpu=reading.cpu,
        memory_used_bytes=reading.memory_used_bytes,
        memory_total_bytes=reading.memory_total_bytes,
        disk_used_bytes=reading.disk_used_bytes,
        disk_total_bytes=reading.disk_total_bytes,
        network_receive_bytes=reading.network_receive_bytes,
        network_send_bytes=reading.network_send_bytes,
    )


def node_view(
    view: views.NodeView, measured: Measured, caller: Caller, hosts: Mapping[str, LatestHost] = NO_HOSTS
) -> NodeView:
    node = view.node
    return NodeView(
        id=node.id,
        cluster=node.cluster,
        state=node.state,
        withheld=node.withheld,
        reason=node.reason,
        cpus=number(node.cpu_milli / WHOLE),
        memory_bytes=node.memory_bytes,
        labels=dict(node.labels),
        load=node.load,
        gpus_total=len(view.gpus),
        gpus_free=view.free_gpus,
        gpus_allocated=number(sum(gpu.held_milli for gpu in view.gpus) / WHOLE),
        taken=TakenView(
            gpus=len(node.taken.gpus),
            cpus=number(node.taken.cpu_milli / WHOLE),
            memory_bytes=node.taken.memory_bytes,
        ),
        gpus=[gpu_view(gpu, measured, caller) for gpu in view.gpus],
        jobs=_holders(view.jobs, caller, node=node.id),
        host=host_view(hosts[node.id]) if node.id in hosts else None,
    )


def gpu_view(view: views.GpuView, measured: Measured, caller: Caller) -> GpuView:
    gpu, condition = view.gpu, view.condition
    return GpuView(
        id=gpu.id,
        index=gpu.index,
        node=view.node,
        cluster=view.cluster,
        model=gpu.model,
        memory_bytes=gpu.memory_bytes,
        health=gpu.health,
        health_since=rfc3339_or_none(condition.since or None) if condition is not None else None,
        evidence=[_evidence_view(item) for item in condition.evidence] if condition is not None else [],
        pool=gpu.pool,
        link_group=gpu.link_group,
        allocated=number(view.held_milli / WHOLE),
        taken=view.is_taken,
        jobs=_holders(view.jobs, caller, gpu=gpu.id),
        reading=reading_view(measured[gpu.id]) if gpu.id in measured else None,
    )


def _evidence_view(item: Evidence) -> EvidenceView:
    return EvidenceView(sign=item.sign, at=rfc3339(item.at), text=item.text, advice=item.advice)


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
