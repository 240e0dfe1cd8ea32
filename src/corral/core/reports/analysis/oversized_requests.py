"""Jobs that asked for more than they used: GPUs that never did anything, or a whole GPU where a part would do."""

from __future__ import annotations

import math

from corral.core.alerts.model import Severity
from corral.core.counts import counted, noun_for
from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE
from corral.core.reports.analysis.jobs import MeasuredJob, measured_jobs
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind, PackageSize, UsageLine

#: Shares that are proposed, in thousandths, and what is left free in them.
SHARES = (250, 500)
HEADROOM = 1.25


def find(seen: AnalysisInput) -> list[Finding]:
    found = []
    memory_of = {gpu.id: gpu.memory_bytes for _, gpu in seen.gpus().values()}
    for job in measured_jobs(seen.usage, seen.rules.least_gpu_hours):
        line = job.longest
        used = len(line.measured.used_gpu_ids)
        whole = line.gpu_milli == len(line.gpu_ids) * WHOLE
        if whole and 0 < used < len(line.gpu_ids):
            found.append(_unused_gpus(seen, job, line, used))
        elif whole and len(line.gpu_ids) == 1 and used == 1:
            memory = memory_of.get(line.gpu_ids[0], 0)
            part = line.measured.memory_peak_bytes / memory if memory else 1.0
            if part < seen.rules.low_memory and job.utilization < seen.rules.low_utilization:
                found += _small_use(seen, job, line, part)
    return found


def _unused_gpus(seen: AnalysisInput, job: MeasuredJob, line: UsageLine, used: int) -> Finding:
    held = len(line.gpu_ids)
    # Every node of a gang gets the same.
    per_node = math.ceil(used / line.nodes)
    wasted = job.gpu_hours * (held - used) / held
    return Finding(
        kind=FindingKind.OVERSIZED_REQUEST,
        severity=Severity.WARNING,
        subject=line.job_id,
        title=f"{line.job_id} ({line.job_name}) used {used} of its {counted(held, 'GPU')}",
        evidence={
            "gpus": held,
            "used_gpus": used,
            "proposed_gpus": per_node,
            "nodes": line.nodes,
            "unused_gpu_hours": wasted,
            "user": line.user,
        },
        text=(
            f"Of the {counted(held, 'GPU')} that the job of {line.user} held, "
            f"{held - used} {noun_for(held - used, 'was', 'were')} never in use:"
            f" {wasted:.1f} GPU-hours."
        ),
        proposal=_ask_for(seen, line, gpus=per_node),
        weight=wasted,
    )


def _small_use(seen: AnalysisInput, job: MeasuredJob, line: UsageLine, memory_part: float) -> list[Finding]:
    needed = max(memory_part, job.utilization) * HEADROOM * WHOLE
    share = next((share for share in SHARES if share >= needed), None)
    if share is None:
        return []
    wasted = job.gpu_hours * (1 - share / WHOLE)
    return [
        Finding(
            kind=FindingKind.OVERSIZED_REQUEST,
            severity=Severity.INFO,
            subject=line.job_id,
            title=f"{line.job_id} ({line.job_name}) would do with {gpus_text(share)} of a GPU",
            evidence={
                "gpus": 1,
                "proposed_gpus": share / WHOLE,
                "memory_peak_bytes": line.measured.memory_peak_bytes,
                "memory_part": memory_part,
                "utilization": job.utilization,
                "unused_gpu_hours": wasted,
                "user": line.user,
            },
            text=(
                f"The job of {line.user} had at most {memory_part:.0%} of its {line.model}'s memory in use, and used"
                f" the GPU by {job.utilization:.0%}."
            ),
            proposal=_ask_for(seen, line, gpu_milli=share),
            weight=wasted,
        )
    ]


def _ask_for(seen: AnalysisInput, line: UsageLine, *, gpus: int = 0, gpu_milli: int = 0) -> str:
    size = gpus_text(gpus * WHOLE + gpu_milli)
    package = next((package for package in seen.packages if _suits(package, line, gpus, gpu_milli)), None)
    where = " on each node" if line.nodes > 1 else ""
    text = f"Ask for {size} next time{where}: corral submit --gpus {size} …"
    return text if package is None else f"{text}, or --package {package.name}"


def _suits(package: PackageSize, line: UsageLine, gpus: int, gpu_milli: int) -> bool:
    right_model = not package.models or line.model in package.models
    return right_model and (package.gpus, package.gpu_milli) == (gpus, gpu_milli)
