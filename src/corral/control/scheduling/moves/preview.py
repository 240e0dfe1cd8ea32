"""The preview of a resize or a move of a running job: its GPUs, the work that it may lose, and when waiting jobs start.
Nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.live.state import State
from corral.core.model import Allocation, Job
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan
from corral.core.scheduling.preemption.preemption import lost_gpu_seconds
from corral.core.snapshot.changes import PutJob

#: Smaller differences of a planned start are not shown.
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingEffect:
    """A waiting job that would start earlier or later. None: no start is planned."""

    job: Job
    start_before: float | None
    start_after: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePreview:
    job: Job
    before: Allocation
    after: Allocation
    #: an upper bound: nothing is lost if the program saves when it is warned
    lost_gpu_seconds: float
    waiting: tuple[WaitingEffect, ...]


def preview(state: State, now: float, changed: Job) -> ChangePreview:
    """`changed` is a running job with its new allocation."""
    job = state.snapshot.jobs[changed.id]
    assert job.allocation is not None
    assert changed.allocation is not None
    return ChangePreview(
        job=job,
        before=job.allocation,
        after=changed.allocation,
        lost_gpu_seconds=lost_gpu_seconds(job, now) if changed.allocation != job.allocation else 0.0,
        waiting=_effects(state, now, job, changed),
    )


def _effects(state: State, now: float, job: Job, changed: Job) -> tuple[WaitingEffect, ...]:
    """The cycle that would follow the change, compared with one without it."""
    snapshot = state.snapshot
    before = _starts(schedule(snapshot, now), now)
    snapshot.apply([PutJob(job=changed)])
    try:
        after = _starts(schedule(snapshot, now), now)
    finally:
        snapshot.apply([PutJob(job=job)])
    effects = [
        WaitingEffect(job=snapshot.jobs[job_id], start_before=before.get(job_id), start_after=after.get(job_id))
        for job_id in before.keys() | after.keys()
        if _differ(before.get(job_id), after.get(job_id))
    ]
    return tuple(sorted(effects, key=lambda effect: effect.job.serial))


def _starts(plan: Plan, now: float) -> dict[str, float]:
    """When waiting jobs start, as far as it is planned."""
    return {item.job_id: item.soonest_at for item in plan.planned} | {start.job_id: now for start in plan.starts}


def _differ(before: float | None, after: float | None) -> bool:
    # Two infinite starts, which are known to be unknown, are equal.
    return before != after and (before is None or after is None or abs(before - after) >= _LEAST_SECONDS)
