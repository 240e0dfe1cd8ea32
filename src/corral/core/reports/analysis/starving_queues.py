"""Queues whose jobs wait much longer than those of others."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from corral.core.alerts.model import Severity
from corral.core.counts import counted
from corral.core.model import JobState
from corral.core.quantities import format_duration
from corral.core.reports.analysis.model import HOUR, AnalysisInput, Finding, FindingKind


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waits:
    """The waits in one queue: of jobs that started in the period and of jobs that still wait."""

    queue: str
    waiting: int
    oldest_seconds: float
    p90_seconds: float
    gpu_hours: float


def find(seen: AnalysisInput) -> list[Finding]:
    all_waits = [waits for name in sorted(seen.queues) if (waits := _waits(seen, name)) is not None]
    total = sum(waits.gpu_hours for waits in all_waits)
    found = []
    for waits in all_waits:
        others = [other.p90_seconds for other in all_waits if other is not waits]
        usual = median(others) if others else None
        if waits.waiting and _is_starving(seen, waits, usual):
            found.append(_finding(seen, waits, usual, total))
    return found


def _waits(seen: AnalysisInput, queue: str) -> _Waits | None:
    lines = [line for line in seen.usage if line.queue == queue]
    had = [max(0.0, line.planned_at - line.queued_at) for line in lines if line.planned_at >= seen.since]
    have = [
        max(0.0, seen.until - max(job.queued_at or job.created_at, job.not_before))
        for job in seen.jobs
        if job.queue == queue and job.state is JobState.QUEUED and not job.after
    ]
    if not had and not have:
        return None
    return _Waits(
        queue=queue,
        waiting=len(have),
        oldest_seconds=max(have, default=0.0),
        p90_seconds=_p90([*had, *have]),
        gpu_hours=sum(line.gpu_seconds(seen.since, seen.until) for line in lines) / HOUR,
    )


def _is_starving(seen: AnalysisInput, waits: _Waits, usual: float | None) -> bool:
    rules = seen.rules
    if waits.oldest_seconds >= rules.very_long_wait_seconds:
        return True
    if usual is None or waits.oldest_seconds < rules.long_wait_seconds:
        return False
    return waits.p90_seconds >= rules.longer_than_others * usual


def _p90(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


def _finding(seen: AnalysisInput, waits: _Waits, usual: float | None, total_gpu_hours: float) -> Finding:
    queue = seen.queues[waits.queue]
    weights = sum(other.weight for other in seen.queues.values() if other.pool == queue.pool)
    received = waits.gpu_hours / total_gpu_hours if total_gpu_hours else 0.0
    evidence: dict[str, float | int | str] = {
        "waiting_jobs": waits.waiting,
        "oldest_wait_seconds": waits.oldest_seconds,
        "p90_wait_seconds": waits.p90_seconds,
        "gpu_hours": waits.gpu_hours,
        "share_of_gpu_hours": received,
        "share_of_weight": queue.weight / weights if weights else 0.0,
        "pool": queue.pool,
    }
    compared = ""
    if usual is not None:
        evidence["others_p90_wait_seconds"] = usual
        compared = f", in the other queues {_duration(usual)}"
    limits = (
        f" Its own limit of {counted(queue.max_gpus, 'GPU')} may be what holds it."
        if queue.max_gpus is not None
        else ""
    )
    return Finding(
        kind=FindingKind.STARVING_QUEUE,
        severity=Severity.WARNING,
        subject=waits.queue,
        title=f"Jobs in queue {waits.queue} wait too long",
        evidence=evidence,
        text=(
            f"{counted(waits.waiting, 'job waits', 'jobs wait')}, the oldest "
            f"for {_duration(waits.oldest_seconds)}. Nine of ten waited up to"
            f" {_duration(waits.p90_seconds)}{compared}. The queue received {received:.0%} of all GPU-hours.{limits}"
        ),
        proposal=(
            f"Ask why the first one waits (corral queue show {waits.queue}, corral why JOB); give the queue guaranteed"
            f" GPUs or more weight: corral queue edit {waits.queue} --guaranteed-gpus N."
        ),
        weight=waits.oldest_seconds,
    )


def _duration(seconds: float) -> str:
    return format_duration(round(seconds / 60) * 60) if seconds >= 60 else format_duration(round(seconds))
