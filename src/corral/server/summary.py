"""The whole installation in a few numbers, for the overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from corral.control import views
from corral.control.ports import Transaction
from corral.control.state import State
from corral.core.alerts.model import AlertState, Severity
from corral.core.model import GpuHealth, JobState
from corral.server.schemas.base import number
from corral.server.schemas.fleet import Measured, OverviewView
from corral.server.totals import totals_of


def counted(tables: Transaction) -> tuple[dict[str, int], list[Severity]]:
    """Jobs by state, and how severe the alerts are that fire."""
    firing = [alert.severity for alert in tables.alerts.live() if alert.state is AlertState.FIRING]
    return tables.jobs.counts(), firing


def overview_of(
    state: State, counts: Mapping[str, int], alerts: Iterable[Severity], measured: Measured
) -> OverviewView:
    """Allocation: GPUs asked for by unfinished jobs, of all. Utilisation: measured use by running jobs, of all."""
    gpus = [gpu for node in views.node_views(state) for gpu in node.gpus]
    asked_milli = sum(job.request.total_gpu_milli for job in state.snapshot.jobs.values())
    fresh = {gpu_id: latest.reading for gpu_id, latest in measured.items() if not latest.stale}
    totals = totals_of(gpus, asked_milli, fresh)
    health = Counter(gpu.gpu.health for gpu in gpus)
    severities = Counter(alerts)
    return OverviewView(
        nodes=len(state.snapshot.nodes),
        gpus=totals.gpus,
        gpus_free=sum(gpu.held_milli == 0 for gpu in gpus),
        gpus_allocated=number(totals.held),
        gpus_suspect=health[GpuHealth.SUSPECT],
        gpus_failed=health[GpuHealth.FAILED],
        gpus_stale=totals.unread,
        allocation=totals.allocation or 0.0,
        utilization=totals.utilization,
        power_watts=totals.power_watts,
        temperature_celsius=totals.temperature_celsius,
        jobs={job_state.value: counts.get(job_state.value, 0) for job_state in JobState},
        queued=counts.get(JobState.QUEUED.value, 0),
        alerts={severity.value: severities[severity] for severity in Severity},
    )
