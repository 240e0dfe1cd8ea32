"""The whole installation in a few numbers, for the overview."""

from __future__ import annotations

from collections.abc import Mapping

from corral.control import views
from corral.control.state import State
from corral.core.model import WHOLE, JobState
from corral.server.schemas.base import number
from corral.server.schemas.fleet import Measured, OverviewView


def overview_of(state: State, counts: Mapping[str, int], measured: Measured) -> OverviewView:
    """Allocation: GPUs asked for by unfinished jobs, of all. Utilisation: measured use by running jobs, of all."""
    gpus = [gpu for node in views.node_views(state) for gpu in node.gpus]
    held_milli = sum(gpu.held_milli for gpu in gpus)
    asked_milli = sum(job.request.total_gpu_milli for job in state.snapshot.jobs.values())
    used = [
        latest.reading.utilization
        for gpu in gpus
        if gpu.held_milli and (latest := measured.get(gpu.gpu.id)) is not None and not latest.stale
        if latest.reading.utilization is not None
    ]
    idle = all(gpu.held_milli == 0 for gpu in gpus)
    return OverviewView(
        nodes=len(state.snapshot.nodes),
        gpus=len(gpus),
        gpus_free=sum(gpu.held_milli == 0 for gpu in gpus),
        gpus_allocated=number(held_milli / WHOLE),
        allocation=asked_milli / WHOLE / len(gpus) if gpus else 0.0,
        utilization=sum(used) / len(gpus) if gpus and (used or idle) else None,
        jobs={job_state.value: counts.get(job_state.value, 0) for job_state in JobState},
        queued=counts.get(JobState.QUEUED.value, 0),
    )
