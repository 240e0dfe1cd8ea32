"""API schemas: clusters, nodes, GPUs and their totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.fleet import node_views as views
from corral.control.fleet.draining.drain_records import Drain
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.records import EventRecord
from corral.core.model import WHOLE, GpuHealth, Job, JobState, NodeState
from corral.core.monitoring.health.model import Evidence, Sign
from corral.server.schemas.base import Body, Moment, Number, Text, View, number, rfc3339, rfc3339_or_none
from corral.telemetry.readings import LatestHost, LatestReading


class HolderView(View):
    """A job on a GPU or a node; of a job that the caller may not see, only its owner and its size are shown."""

    id: str | None
    name: str | None
    user: str
    gpus: Number
    state: JobState


class ReadingView(View):
    at: str
    stale: bool
    utilization: float | None
    sm_activity: float | None = Field(
        description="Compute efficiency: mean part of the time in which an SM had work, 0 to 1, where DCGM reports it."
    )
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
    processes: int = Field(description="Number of processes that use the GPU.")
    lost: bool = Field(description="The GPU was found before and does not answer any more.")


class HostView(View):
    """Readings of a node apart from its GPUs; null if the node does not report them. Rates are per second."""

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
    health_since: str | None = Field(description="Null if the GPU was always healthy.")
    evidence: list[EvidenceView] = Field(description="Observed problems, oldest first, also those that are over.")
    pool: str
    next_pool: str = Field(
        description="The pool that the GPU moves to when its jobs have ended, until when it takes no new jobs; empty "
        "if the GPU stays in its pool."
    )
    link_group: str = Field(description="GPUs of a node with the same value are linked; empty if no link is known.")
    allocated: Number
    taken: bool = Field(description="The GPU is used outside of corral.")
    free: bool = Field(
        description="A job could start on the GPU now: not held, healthy, on a ready node, not reserved for some users."
    )
    reserved: bool = Field(description="The GPU is idle, and reserved for some users.")
    jobs: list[HolderView]
    reading: ReadingView | None


class TakenView(View):
    """Resources of a node that are used outside of corral."""

    gpus: int
    cpus: Number
    memory_bytes: int


class NodeDrain(Body):
    empty_by: Moment | None = Field(
        default=None,
        description="Jobs that are left at this time are asked to save and continue elsewhere; in the past: now. "
        "Null: jobs run to their end.",
    )


class DrainView(View):
    started_at: str
    started_by: str
    empty_by: str | None = Field(description="Time at which remaining jobs are displaced; null: jobs run to their end.")
    drained_at: str | None = Field(description="Time at which the last job had left; null while jobs are left.")
    maintenance: str | None = Field(description="The maintenance window after which the node takes jobs again.")


class NodeView(View):
    id: str
    cluster: str
    state: NodeState
    withheld: NodeState = Field(description="State set by an operator: ready, cordoned or draining.")
    drain: DrainView | None = Field(description="The drain of the node; null if it is not being drained.")
    reason: str = Field(
        description="The engine's reason for giving the node no work; empty if the engine reports none."
    )
    cpus: Number
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: Number = Field(description="GPUs that a job could start on now.")
    gpus_reserved: int = Field(description="Idle GPUs that are reserved for some users.")
    gpus_allocated: Number
    taken: TakenView
    gpus: list[GpuView]
    jobs: list[HolderView]
    host: HostView | None = None


class GpuMark(Body):
    """A GPU's health, set by an operator."""

    health: Annotated[
        Literal["suspect", "failed"],
        Field(description="Suspect: the GPU gets no new jobs. Failed: its jobs are moved, too."),
    ]
    reason: Annotated[Text, Field(min_length=1, max_length=500)]


class ClusterView(View):
    name: str
    engine: str
    simulated: bool = Field(description="Whether the GPUs are virtual: jobs are real, readings are simulated.")
    healthy: bool
    detail: str = Field(description="The engine's error message; empty while the engine answers.")
    observed_at: str | None = Field(
        description="Time of the last observation of the engine; null before the first one."
    )
    since: str | None = Field(description="Time since which this server has seen the engine answer, or not answer.")
    nodes: int
    nodes_ready: int
    gpus: int
    gpus_free: int = Field(description="GPUs that a job could start on now.")
    gpus_allocated: Number = Field(description="GPUs that jobs hold.")
    gpus_taken: int = Field(description="GPUs that are used outside of corral.")
    gpu_types: dict[str, str] = Field(
        description="GPU models by the names of the cluster's own scheduler, if configured."
    )


class OverviewView(View):
    """The installation in a few numbers; a value that no device reports is null, not zero."""

    nodes: int
    nodes_by_state: dict[str, int]
    gpus: int
    gpus_free: Number = Field(description="GPUs that a job could start on now.")
    gpus_reserved: int = Field(description="Idle GPUs that are reserved for some users.")
    gpus_allocated: Number
    gpus_taken: int = Field(description="GPUs that are used outside of corral.")
    gpus_suspect: int
    gpus_failed: int
    #: whose reading is too old, or that were never read
    gpus_stale: int
    allocation: float
    utilization: float | None
    compute_efficiency: float | None = Field(
        description="Mean activity of the SMs of held GPUs, 0 to 1, where DCGM reports it."
    )
    idle_gpus: int = Field(description="GPUs that jobs hold and do not use at this moment.")
    power_watts: float | None
    power_limit_watts: float | None = Field(description="Sum of the power limits of the GPUs that report one.")
    #: temperature of the hottest GPU
    temperature_celsius: float | None
    temperature_mean_celsius: float | None
    cpu: float | None = Field(description="Mean CPU utilisation of the nodes that report it, 0 to 1.")
    memory_used_bytes: int | None = Field(description="Sum over the nodes that report it; the total likewise.")
    memory_total_bytes: int | None
    jobs: dict[str, int] = Field(description="Number of jobs by state; for a single cluster, ended jobs are left out.")
    running: int
    queued: int
    wait_seconds_median: float | None = Field(description="Time that the jobs which wait now have waited so far.")
    wait_seconds_max: float | None
    #: that fire, by severity
    alerts: dict[str, int]


class EventView(View):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    owner: str = Field(description="The user whose job, volume or account the event is about; empty if there is none.")
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
        sm_activity=reading.sm_activity,
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
        state=view.state,
        withheld=node.withheld,
        drain=_drain_view(view.drain),
        reason=node.reason,
        cpus=number(node.cpu_milli / WHOLE),
        memory_bytes=node.memory_bytes,
        labels=dict(node.labels),
        load=node.load,
        gpus_total=len(view.gpus),
        gpus_free=view.free_gpus,
        gpus_reserved=view.reserved_gpus,
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


def _drain_view(drain: Drain | None) -> DrainView | None:
    if drain is None:
        return None
    return DrainView(
        started_at=rfc3339(drain.started_at),
        started_by=drain.started_by,
        empty_by=rfc3339_or_none(drain.empty_by),
        drained_at=rfc3339_or_none(drain.drained_at),
        maintenance=drain.window or None,
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
        next_pool=gpu.next_pool,
        link_group=gpu.link_group,
        allocated=number(view.held_milli / WHOLE),
        taken=view.is_taken,
        free=view.is_free,
        reserved=view.is_reserved,
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
        owner=event.owner,
        detail=dict(event.detail),
        source=event.source,
    )


def _holders(
    jobs: Iterable[Job], caller: Caller, *, node: str | None = None, gpu: str | None = None
) -> list[HolderView]:
    """Each job once, with the GPUs that it holds on this node or the share of this GPU."""
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
