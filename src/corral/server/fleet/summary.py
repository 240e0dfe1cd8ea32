"""The whole installation in a few numbers, for the overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from corral.control.fleet.live_fleet import GpuCounts, HeldGpus
from corral.control.jobs.job_clusters import homes_of, is_of
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.core.alerts.model import AlertState, Severity
from corral.core.model import GpuHealth, Job, JobState, NodeState
from corral.server.fleet.totals import totals_of
from corral.server.schemas.base import number
from corral.server.schemas.fleet.nodes import OverviewView
from corral.telemetry.reading_sums import GpuSums, HostSums


@dataclass(frozen=True, kw_only=True, slots=True)
class Installation:
    """Numbers of the state at one moment, of one cluster or of all."""

    nodes: Mapping[NodeState, int]
    gpus: GpuCounts
    held: HeldGpus
    #: the names of a cluster's nodes; None for all clusters
    names: frozenset[str] | None
    #: jobs by state, for one cluster without those that have ended; None if only the store knows
    jobs: Mapping[str, int] | None
    #: GPUs that unfinished jobs request
    asked_milli: int
    wait_seconds_median: float | None
    wait_seconds_max: float | None


def installation_now(state: State, now: float, cluster: str | None = None) -> Installation:
    fleet = state.fleet(now)
    nodes: Counter[NodeState] = Counter()
    for (name, node_state), count in fleet.nodes.items():
        if cluster in (None, name):
            nodes[node_state] += count
    if cluster is None:
        sums, jobs = state.job_sums(), stored_jobs(state)
        asked, since = sums.asked_milli, sums.queued_since()
    else:
        homes = homes_of(state)
        live = [job for job in state.snapshot.jobs.values() if is_of(state, homes, job, cluster)]
        asked, since = _asked_gpus_and_queue_times(live)
        jobs = Counter(job.state.value for job in live)
    waits_median, waits_max = _waits(since, now)
    return Installation(
        nodes=nodes,
        gpus=fleet.total(cluster),
        held=fleet.held_gpus(),
        names=None
        if cluster is None
        else frozenset(view.node.id for view in fleet.views() if view.node.cluster == cluster),
        jobs=jobs,
        asked_milli=asked,
        wait_seconds_median=waits_median,
        wait_seconds_max=waits_max,
    )


def stored_jobs(state: State) -> dict[str, int] | None:
    """Jobs by state, also those that have ended; None if only the store knows."""
    counts = state.job_counts
    return None if counts is None else {job_state.value: count for job_state, count in counts.items()}


def firing_alerts(tables: Transaction) -> tuple[Severity, ...]:
    """The severity of every alert that fires."""
    return tuple(alert.severity for alert in tables.alerts.live() if alert.state is AlertState.FIRING)


def counted_jobs(tables: Transaction) -> dict[str, int]:
    """Counts jobs in the store, for a server whose state does not have the counts."""
    return tables.jobs.counts()


def overview_of(
    seen: Installation, jobs: Mapping[str, int], alerts: Iterable[Severity], read: GpuSums, hosts: HostSums
) -> OverviewView:
    """Allocation: share of all GPUs that unfinished jobs request. Utilisation: measured use by running jobs, as a share
    of all GPUs. `jobs` by state; `read` and `hosts` are about the same GPUs and nodes as `seen`."""
    totals = totals_of(seen.gpus, seen.asked_milli, read)
    severities = Counter(alerts)
    return OverviewView(
        nodes=sum(seen.nodes.values()),
        nodes_by_state={node_state.value: seen.nodes.get(node_state, 0) for node_state in NodeState},
        gpus=totals.gpus,
        gpus_free=seen.gpus.free,
        gpus_reserved=seen.gpus.reserved,
        gpus_taken=seen.gpus.taken,
        gpus_allocated=number(totals.held),
        gpus_suspect=seen.gpus.health[GpuHealth.SUSPECT],
        gpus_failed=seen.gpus.health[GpuHealth.FAILED],
        gpus_stale=totals.unread,
        allocation=totals.allocation or 0.0,
        utilization=totals.utilization,
        compute_efficiency=totals.sm_activity,
        idle_gpus=read.idle,
        power_watts=totals.power_watts,
        power_limit_watts=read.power_limit_watts,
        temperature_celsius=totals.temperature_celsius,
        temperature_mean_celsius=read.temperature_mean_celsius,
        cpu=hosts.cpu,
        memory_used_bytes=hosts.memory_used_bytes,
        memory_total_bytes=hosts.memory_total_bytes,
        jobs={job_state.value: jobs.get(job_state.value, 0) for job_state in JobState},
        running=jobs.get(JobState.RUNNING.value, 0),
        queued=jobs.get(JobState.QUEUED.value, 0),
        wait_seconds_median=seen.wait_seconds_median,
        wait_seconds_max=seen.wait_seconds_max,
        alerts={severity.value: severities[severity] for severity in Severity},
    )


def _asked_gpus_and_queue_times(jobs: Iterable[Job]) -> tuple[int, list[float]]:
    """GPUs that unfinished jobs request, and since when queued jobs wait, earliest first."""
    asked, since = 0, []
    for job in jobs:
        asked += job.request.total_gpu_milli
        if job.state is JobState.QUEUED and job.queued_at is not None:
            since.append(job.queued_at)
    return asked, sorted(since)


def _waits(since: Sequence[float], now: float) -> tuple[float | None, float | None]:
    """Median and longest waiting time. `since` is in order, so the median needs its middle only."""
    if not since:
        return None, None
    middle = since[(len(since) - 1) // 2 : len(since) // 2 + 1]
    return median(max(0.0, now - at) for at in middle), max(0.0, now - since[0])
