"""Jobs that hold GPUs and do nothing: they are warned, may be given more time once, and are stopped then.

Who is idle is seen elsewhere (`core.idling`); here it becomes a warning, kept so that a restart neither loses nor
doubles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from corral.control.errors import WrongState
from corral.control.jobs.jobs import own_job
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.records import IdleWarning
from corral.core.fleet.resources import gpus_text
from corral.core.jobs.lifecycle import StopRequested
from corral.core.model import WHOLE, EndReason, Job, JobState
from corral.core.monitoring.idleness import Activity, IdleRules


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """The observed GPU use of one attempt."""

    job_id: str
    attempt: int
    activity: Activity
    #: mean use of its GPUs in the window, as far as it is known
    utilization: float


def is_due(state: State, now: float, sighting: Sighting) -> bool:
    """Whether reviewing this sighting would change anything."""
    warning = state.idle_warnings.get(sighting.job_id)
    if warning is None or warning.attempt != sighting.attempt:
        return sighting.activity is Activity.IDLE
    is_still_idle = sighting.activity in (Activity.IDLE, Activity.QUIET)
    return sighting.activity is Activity.ACTIVE or (is_still_idle and now >= warning.deadline)


def outlived(state: State) -> list[str]:
    """Jobs whose warning is about an attempt that is over."""
    return [
        warning.job_id
        for warning in state.idle_warnings.values()
        if _running(state, warning.job_id, warning.attempt) is None
    ]


def review(work: Work, sightings: Sequence[Sighting], rules: IdleRules) -> None:
    """Warns idle jobs, withdraws warnings of jobs that work again, and stops jobs that were idle for too long. A second
    call with the same input changes nothing.
    """
    _drop(work, outlived(work.state))
    for sighting in sightings:
        job = _running(work.state, sighting.job_id, sighting.attempt)
        if job is None or not rules.counts(job.kind) or not is_due(work.state, work.now, sighting):
            continue
        warning = work.state.idle_warnings.get(job.id)
        if warning is None:
            _warn(work, job, sighting, rules)
        elif sighting.activity is Activity.ACTIVE:
            _drop(work, [job.id])
            detail = {"attempt": job.attempt, "utilization": round(sighting.utilization, 4)}
            work.record(SYSTEM, "job.idle-cleared", job.id, owner=job.user, detail=detail)
        else:
            _reclaim(work, job, sighting, warning, rules)


def extend(work: Work, caller: Caller, ref: str, rules: IdleRules) -> Job:
    """More time for a job that was warned; once. Its owner or an operator asks."""
    job = own_job(work, caller, ref)
    warning = work.state.idle_warnings.get(job.id)
    if warning is None or warning.attempt != job.attempt or job.state is not JobState.RUNNING:
        raise WrongState(f"job {job.id} was not warned of doing nothing: there is nothing to extend", state=job.state)
    if warning.extended_at is not None:
        raise WrongState(
            f"job {job.id} was given more time already; it is stopped unless it uses its GPUs",
            state=job.state,
            seconds_left=max(0.0, round(warning.deadline - work.now)),
        )
    longer = replace(warning, deadline=warning.deadline + rules.extension_seconds, extended_at=work.now)
    _keep(work, longer)
    work.record(caller, "job.idle-extended", job.id, owner=job.user, detail={"until": longer.deadline})
    return job


def _warn(work: Work, job: Job, sighting: Sighting, rules: IdleRules) -> None:
    warning = IdleWarning(
        job_id=job.id, attempt=job.attempt, warned_at=work.now, deadline=work.now + rules.warning_seconds
    )
    _keep(work, warning)
    assert job.allocation is not None
    detail = {
        "attempt": job.attempt,
        "utilization": round(sighting.utilization, 4),
        "window_minutes": rules.window_seconds / 60,
        "gpus": job.allocation.total_gpu_milli / WHOLE,
        "deadline": warning.deadline,
    }
    work.record(SYSTEM, "job.idle-warned", job.id, owner=job.user, detail=detail)


def _reclaim(work: Work, job: Job, sighting: Sighting, warning: IdleWarning, rules: IdleRules) -> None:
    assert job.allocation is not None
    minutes = (work.now - warning.warned_at + rules.window_seconds) / 60
    message = (
        f"stopped because it did nothing with what it held (GPUs: {gpus_text(job.allocation.total_gpu_milli)}): "
        f"their use was {sighting.utilization:.1%} over {minutes:.0f} minutes, "
        f"below the limit of {rules.utilization:.1%}"
    )
    _drop(work, [job.id])
    work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.EVICTED, message=message))
    detail = {"attempt": job.attempt, "utilization": round(sighting.utilization, 4), "message": message}
    work.record(SYSTEM, "job.idle-stopped", job.id, owner=job.user, detail=detail)


def _running(state: State, job_id: str, attempt: int) -> Job | None:
    job = state.snapshot.jobs.get(job_id)
    return job if job is not None and job.state is JobState.RUNNING and job.attempt == attempt else None


def _keep(work: Work, warning: IdleWarning) -> None:
    work.tx.health.save_idle_warning(warning)
    work.state.idle_warnings[warning.job_id] = warning


def _drop(work: Work, job_ids: Sequence[str]) -> None:
    if job_ids:
        work.tx.health.delete_idle_warnings(job_ids)
        for job_id in job_ids:
            del work.state.idle_warnings[job_id]
