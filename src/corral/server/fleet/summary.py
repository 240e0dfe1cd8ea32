"""The whole installation in a few numbers, for the overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from corral.control.jobs.job_clusters import homes_of, is_of
from corral.control.live.state import State
from corral.control.ports import GpuReading, HostReading, Transaction
from corral.control.scheduling import views
from corral.core.alerts.model import AlertState, Severity
from corral.core.model import GpuHealth, Job, JobState, NodeState
from corral.server.fleet.totals import totals_of
from corral.server.schemas.base import number
from corral.server.schemas.fleet.nodes import Measured, OverviewView
from corral.telemetry.readings import LatestHost


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Numbers from the store: jobs by state, and the severities of firing alerts."""

    jobs: Mapping[str, int]
    alerts: tuple[Severity, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """The latest readings, and the utilisation below which a held GPU is idle."""

    gpus: Measured
    hosts: Mapping[str, LatestHost]
    idle_below: float

    def fresh(self) -> dict[str, GpuReading]:
        """Fresh readings by GPU."""
        return {gpu_id: latest.reading for gpu_id, latest in self.gpus.items() if not latest.stale}


def counted(tables: Transaction) -> Counts:
    firing = tuple(alert.severity for alert in tables.alerts.live() if alert.state is AlertState.FIRING)
    return Counts(jobs=tables.jobs.counts(), alerts=firing)


def overview_of(state: State, now: float, counts: Counts, sight: Sight, cluster: str | None = None) -> OverviewView:
    """Allocation: share of all GPUs that unfinished jobs request. Utilisation: measured use by running jobs, as a share
    of all GPUs. Of one `cluster`, or of all."""
    nodes = [view for view in views.node_views(state, now) if cluster in (None, view.node.cluster)]
    names = {view.node.id for view in nodes}
    gpus = [gpu for view in nodes for gpu in view.gpus]
    homes = homes_of(state)
    live = [job for job in state.snapshot.jobs.values() if cluster is None or is_of(state, homes, job, cluster)]
    jobs = counts.jobs if cluster is None else Counter(job.state.value for job in live)
    asked_milli, waits = _asked_and_waits(live, now)
    fresh = sight.fresh()
    totals = totals_of(gpus, asked_milli, fresh)
    health = Counter(gpu.gpu.health for gpu in gpus)
    severities = Counter(counts.alerts)
    states = Counter(view.node.state for view in nodes)
    hosts = [latest.reading for name, latest in sight.hosts.items() if name in names and not latest.stale]
    used, total = _memory(hosts)
    known = [fresh[gpu.gpu.id] for gpu in gpus if gpu.gpu.id in fresh]
    held = {gpu.gpu.id for gpu in gpus if gpu.held_milli}
    return OverviewView(
        nodes=len(nodes),
        nodes_by_state={node_state.value: states[node_state] for node_state in NodeState},
        gpus=totals.gpus,
        gpus_free=sum(gpu.is_free for gpu in gpus),
        gpus_reserved=sum(gpu.is_reserved for gpu in gpus),
        gpus_taken=sum(gpu.is_taken for gpu in gpus),
        gpus_allocated=number(totals.held),
        gpus_suspect=health[GpuHealth.SUSPECT],
        gpus_failed=health[GpuHealth.FAILED],
        gpus_stale=totals.unread,
        allocation=totals.allocation or 0.0,
        utilization=totals.utilization,
        compute_efficiency=totals.sm_activity,
        idle_gpus=sum(_is_idle(reading, sight.idle_below) for reading in known if reading.gpu_id in held),
        power_watts=totals.power_watts,
        power_limit_watts=_sum(reading.power_limit_watts for reading in known),
        temperature_celsius=totals.temperature_celsius,
        temperature_mean_celsius=_mean(reading.temperature_celsius for reading in known),
        cpu=_mean(host.cpu for host in hosts),
        memory_used_bytes=used,
        memory_total_bytes=total,
        jobs={job_state.value: jobs.get(job_state.value, 0) for job_state in JobState},
        running=jobs.get(JobState.RUNNING.value, 0),
        queued=jobs.get(JobState.QUEUED.value, 0),
        wait_seconds_median=median(waits) if waits else None,
        wait_seconds_max=max(waits, default=None),
        alerts={severity.value: severities[severity] for severity in Severity},
    )


def _asked_and_waits(jobs: Iterable[Job], now: float) -> tuple[int, list[float]]:
    """GPUs that unfinished jobs request, and the waiting times of queued jobs, in one pass."""
    asked, waits = 0, []
    for job in jobs:
        asked += job.request.total_gpu_milli
        if job.state is JobState.QUEUED and job.queued_at is not None:
            waits.append(max(0.0, now - job.queued_at))
    return asked, waits


def _is_idle(reading: GpuReading, limit: float) -> bool:
    return reading.utilization is not None and reading.utilization < limit


def _memory(hosts: Iterable[HostReading]) -> tuple[int | None, int | None]:
    """Used and total of the nodes that report both, so that the ratio is of the same nodes."""
    known = [
        (host.memory_used_bytes, host.memory_total_bytes)
        for host in hosts
        if host.memory_used_bytes is not None and host.memory_total_bytes is not None
    ]
    return (sum(used for used, _ in known), sum(total for _, total in known)) if known else (None, None)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
