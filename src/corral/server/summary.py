"""The whole installation in a few numbers, for the overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from corral.control import views
from corral.control.ports import Transaction
from corral.control.state import State
from corral.core.alerts.model import AlertState, Severity
from corral.core.model import WHOLE, GpuHealth, JobState
from corral.server.schemas.base import number
from corral.server.schemas.fleet import Measured, OverviewView


def counted(tables: Transaction) -> tuple[dict[str, int], list[Severity]]:
    """Jobs by state, and how severe the alerts are that fire."""
    firing = [alert.severity for alert in tables.alerts.live() if alert.state is AlertState.FIRING]
    return tables.jobs.counts(), firing


def overview_of(
    state: State, counts: Mapping[str, int], alerts: Iterable[Severity], measured: Measured
) -> OverviewView:
    """Allocation: GPUs asked for by unfinished jobs, of all. Utilisation: measured use by running jobs, of all."""
    gpus = [gpu for node in views.node_views(state) for gpu in node.gpus]
    held_milli = sum(gpu.held_milli for gpu in gpus)
    asked_milli = sum(job.request.total_gpu_milli for job in state.snapshot.jobs.values())
    fresh = {
        gpu.gpu.id: latest.reading
        for gpu in gpus
        if (latest := measured.get(gpu.gpu.id)) is not None and not latest.stale
    }
    used = [
        use
        for gpu in gpus
        if gpu.held_milli and gpu.gpu.id in fresh and (use := fresh[gpu.gpu.id].utilization) is not None
    ]
    watts = [reading.power_watts for reading in fresh.values() if reading.power_watts is not None]
    celsius = [reading.temperature_celsius for reading in fresh.values() if reading.temperature_celsius is not None]
    health = Counter(gpu.gpu.health for gpu in gpus)
    severities = Counter(alerts)
    return OverviewView(
        nodes=len(state.snapshot.nodes),
        gpus=len(gpus),
        gpus_free=sum(gpu.held_milli == 0 for gpu in gpus),
        gpus_allocated=number(held_milli / WHOLE),
        gpus_suspect=health[GpuHealth.SUSPECT],
        gpus_failed=health[GpuHealth.FAILED],
        gpus_stale=len(gpus) - len(fresh),
        allocation=asked_milli / WHOLE / len(gpus) if gpus else 0.0,
        utilization=sum(used) / len(gpus) if gpus and (used or not held_milli) else None,
        power_watts=sum(watts) if watts else None,
        temperature_celsius=max(celsius, default=None),
        jobs={job_state.value: counts.get(job_state.value, 0) for job_state in JobState},
        queued=counts.get(JobState.QUEUED.value, 0),
        alerts={severity.value: severities[severity] for severity in Severity},
    )
