"""Jobs that hold GPUs now and have not used them lately."""

from __future__ import annotations

from corral.core.alerts.model import Severity
from corral.core.counts import counted
from corral.core.model import WHOLE, Job, JobKind, JobState
from corral.core.quantities import format_duration
from corral.core.reports.analysis.model import HOUR, AnalysisInput, Finding, FindingKind


def find(seen: AnalysisInput) -> list[Finding]:
    return [_finding(seen, job, use) for job, use in idle_jobs(seen).values()]


def idle_jobs(seen: AnalysisInput) -> dict[str, tuple[Job, float]]:
    """The jobs with idle GPUs and their mean utilization, by id. Only jobs that ran the whole time count: a start takes
    a while.
    """
    found = {}
    for job in seen.jobs:
        if job.state is not JobState.RUNNING or job.allocation is None or job.started_at is None:
            continue
        gpus = job.allocation.gpus
        if not gpus or job.started_at > seen.until - seen.recent_seconds:
            continue
        measured = [seen.recent_utilization[gpu] for gpu in gpus if gpu in seen.recent_utilization]
        # A GPU without measurements does not count as idle.
        if len(measured) == len(gpus) and max(measured) < seen.rules.idle_utilization:
            found[job.id] = (job, sum(measured) / len(measured))
    return found


def _finding(seen: AnalysisInput, job: Job, use: float) -> Finding:
    assert job.allocation is not None
    milli = job.allocation.total_gpu_milli
    idle = sum(line.measured.idle_gpu_seconds for line in seen.usage if line.attempt_id == job.attempt_id) / HOUR
    is_workbench = job.kind is JobKind.WORKBENCH
    window = format_duration(seen.recent_seconds)
    gpus = counted(milli / WHOLE, "GPU")
    return Finding(
        kind=FindingKind.IDLE_ALLOCATION,
        # A workbench may be idle while its user thinks.
        severity=Severity.INFO if is_workbench else Severity.WARNING,
        subject=job.id,
        title=f"{job.id} ({job.name}) holds {gpus} and does nothing",
        evidence={
            "gpus": milli / WHOLE,
            "utilization": use,
            "window_seconds": seen.recent_seconds,
            "idle_gpu_hours": idle,
            "user": job.user,
            "queue": job.queue,
        },
        text=(
            f"The job of {job.user} has used its {gpus} by {use:.1%} in the last {window}. In this attempt it has held"
            f" GPUs idle for {idle:.1f} GPU-hours."
        ),
        proposal=(
            f"Ask {job.user} whether it is still needed; if not: corral stop {job.id}. Idle reclaim"
            " (monitoring.idle_reclaim) does this by itself."
        ),
        weight=milli,
    )
