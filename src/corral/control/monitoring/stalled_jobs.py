"""Trainings that hang or have slowed down: their owners are notified, and a hung one is restarted elsewhere if allowed.

The pace is judged elsewhere (`core.monitoring.step_rates`); here it becomes a mark on the job, so that a restart of the
server neither loses nor repeats a notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.core.jobs.lifecycle import StopRequested
from corral.core.model import EndReason, Job, JobKind, JobState
from corral.core.monitoring.step_rates import Pace


@dataclass(frozen=True, kw_only=True, slots=True)
class PaceSighting:
    """The pace of one attempt."""

    job_id: str
    attempt: int
    pace: Pace
    #: the steps done, and when the last of them was done
    step: int
    at: float
    #: None while they are not known
    steps_per_minute: float | None
    usual_steps_per_minute: float | None


def watched(state: State) -> dict[str, int]:
    """The attempts whose reports are read, by job."""
    return {
        job.id: job.attempt
        for job in state.snapshot.jobs.values()
        if job.state is JobState.RUNNING and job.kind is not JobKind.WORKBENCH
    }


def is_due(state: State, sighting: PaceSighting) -> bool:
    """Whether reviewing this sighting would change anything."""
    job = _running(state, sighting)
    return job is not None and _marked(job, sighting.pace) != (job.hung_since, job.slow_since)


def review(work: Work, sightings: Sequence[PaceSighting]) -> None:
    """Mark jobs by their pace. Reviewing twice changes nothing."""
    for sighting in sightings:
        job = _running(work.state, sighting)
        if job is None or not is_due(work.state, sighting):
            continue
        was_stalled = job.hung_since is not None or job.slow_since is not None
        hung, slow = _marked(job, sighting.pace, sighting.at, work.now)
        marked = work.jobs.edit(job, replace(job, hung_since=hung, slow_since=slow))
        if sighting.pace is Pace.HUNG:
            _hung(work, marked, sighting)
        elif sighting.pace is Pace.SLOW:
            work.record(SYSTEM, "job.slow", job.id, owner=job.user, detail=_detail(job, sighting))
        elif was_stalled:
            work.record(SYSTEM, "job.pace-recovered", job.id, owner=job.user, detail=_detail(job, sighting))


def _marked(
    job: Job, pace: Pace, hung_at: float | None = None, slow_at: float | None = None
) -> tuple[float | None, float | None]:
    """Since when the job hangs, and since when it is slow. Without times only whether that changes matters."""
    hung = (job.hung_since or hung_at or 0.0) if pace is Pace.HUNG else None
    slow = (job.slow_since or slow_at or 0.0) if pace is Pace.SLOW else None
    return hung, slow


def _hung(work: Work, job: Job, sighting: PaceSighting) -> None:
    restarts = job.restart_if_hung and job.retries < job.max_retries
    detail = {**_detail(job, sighting), "since": sighting.at, "restarts": restarts}
    work.record(SYSTEM, "job.hung", job.id, owner=job.user, detail=detail)
    if restarts:
        minutes = (work.now - sighting.at) / 60
        message = f"no step for {minutes:.0f} minutes after step {sighting.step}: restarted elsewhere"
        work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.HUNG, message=message))


def _detail(job: Job, sighting: PaceSighting) -> dict[str, Any]:
    return {
        "attempt": job.attempt,
        "step": sighting.step,
        "steps_per_minute": _rounded(sighting.steps_per_minute),
        "usual_steps_per_minute": _rounded(sighting.usual_steps_per_minute),
        "nodes": [] if job.allocation is None else [grant.node for grant in job.allocation.grants],
    }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else float(f"{rate:.4g}")


def _running(state: State, sighting: PaceSighting) -> Job | None:
    job = state.snapshot.jobs.get(sighting.job_id)
    return job if job is not None and job.state is JobState.RUNNING and job.attempt == sighting.attempt else None
