"""Jobs of the period that have used their GPUs poorly."""

from __future__ import annotations

from corral.core.alerts.model import Severity
from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE
from corral.core.reports.analysis.idle_allocations import idle_jobs
from corral.core.reports.analysis.jobs import MeasuredJob, measured_jobs
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind


def find(seen: AnalysisInput) -> list[Finding]:
    idle = idle_jobs(seen)
    poor = [
        job
        for job in measured_jobs(seen.usage, seen.rules.least_gpu_hours)
        if job.utilization < seen.rules.low_utilization and job.last.job_id not in idle
    ]
    worst = sorted(poor, key=lambda job: -job.unused_gpu_hours)[: seen.rules.most_findings]
    return [_finding(job) for job in worst]


def _finding(job: MeasuredJob) -> Finding:
    last = job.last
    return Finding(
        kind=FindingKind.LOW_UTILIZATION,
        severity=Severity.INFO,
        subject=last.job_id,
        title=f"{last.job_id} ({last.job_name}) used its GPUs by {job.utilization:.0%}",
        evidence={
            "utilization": job.utilization,
            "gpu_hours": job.gpu_hours,
            "unused_gpu_hours": job.unused_gpu_hours,
            "gpus": last.gpu_milli / WHOLE,
            "user": last.user,
            "queue": last.queue,
        },
        text=(
            f"The job of {last.user} was measured for {job.gpu_hours:.1f} GPU-hours on {gpus_text(last.gpu_milli)}"
            f" {last.model} and used {job.busy_gpu_hours:.1f} of them."
        ),
        proposal=(
            "Look at its chart for what it waits for: loading data, the network, or one process that works while the"
            f" others wait. A look at it: corral show {last.job_id}."
        ),
        weight=job.unused_gpu_hours,
    )
