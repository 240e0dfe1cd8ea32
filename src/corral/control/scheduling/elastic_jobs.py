"""Elastic jobs: the sizes that may be requested, a resize by a user, and measured utilisation.

When a job is resized by itself is decided by the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from corral.control.errors import Invalid, OverLimit, WrongState
from corral.control.jobs.jobs import own_job
from corral.control.live.unit_of_work import Caller, Work
from corral.core.counts import counted
from corral.core.jobs.allocation_change import asking_for
from corral.core.jobs.lifecycle import ResizeRequested
from corral.core.model import WHOLE, Allocation, Job, JobState, job_of_attempt
from corral.core.scheduling.elastic.resize import Scalable, free_gpus_beside, scalable_jobs
from corral.core.scheduling.limits.hold_rules import spare_gpus
from corral.core.scheduling.reservations.reservations import Reserved

#: Smaller differences of a measurement are ignored, unless a decision follows from them: otherwise every reading would
#: change the snapshot and be journaled.
USE_STEP = 0.05


def resize(work: Work, caller: Caller, ref: str, gpus: int) -> Job:
    """Resizes a running elastic job to this number of GPUs on each of its nodes, through a checkpoint."""
    job, allocation = _resizable(work, caller, ref, gpus)
    if gpus == job.request.gpus:
        return job
    resized = work.jobs.advance(job, ResizeRequested(at=work.now, allocation=allocation))
    detail = {
        "attempt": job.attempt,
        "cause": "asked",
        "from_gpus": job.request.total_gpu_milli // WHOLE,
        "to_gpus": len(allocation.gpus),
        "node": allocation.grants[0].node,
    }
    work.record(caller, "job.resizing", job.id, owner=job.user, detail=detail)
    return resized


def resized(work: Work, caller: Caller, ref: str, gpus: int) -> Job:
    """The job as it would run after the resize; nothing is changed."""
    job, allocation = _resizable(work, caller, ref, gpus)
    return asking_for(replace(job, allocation=allocation), allocation)


def _resizable(work: Work, caller: Caller, ref: str, gpus: int) -> tuple[Job, Allocation]:
    """The job with its new allocation; refused if it cannot be resized to it."""
    job = own_job(work, caller, ref)
    elastic = job.elastic
    if elastic is None:
        raise WrongState(f"job {job.id} is not elastic: it has no minimum and maximum of GPUs")
    if not elastic.min_gpus <= gpus <= elastic.max_gpus:
        raise Invalid(
            f"job {job.id} may have {elastic.min_gpus} to {counted(elastic.max_gpus, 'GPU')}: asked {gpus}",
            field="gpus",
            asked=gpus,
            limit=elastic.max_gpus,
        )
    if not work.state.policies.scaling.rules.enabled:
        raise WrongState("elastic jobs are not resized here: scaling.enabled is false")
    if job.state is not JobState.RUNNING or job.allocation is None:
        raise WrongState(f"job {job.id} is {job.state}: only a running one can be resized", state=job.state)
    item = next((item for item in scalable_jobs(work.state.snapshot) if item.job.id == job.id), None)
    if item is None:
        raise WrongState(f"a node of job {job.id} takes nothing new: it stays as it is", state=job.state)
    if gpus == job.request.gpus:
        return job, job.allocation
    more = _idle_gpus(work, item, gpus - item.size) if gpus > job.request.gpus else ()
    return job, item.at(item.size if more else gpus, more)


def note_use(work: Work, used: Mapping[str, float]) -> None:
    """Measured use of the GPUs of elastic jobs, by attempt, for the decision whether to resize them."""
    rules = work.state.policies.scaling.rules
    for attempt_id, measured in used.items():
        job_id, number = job_of_attempt(attempt_id)
        job = work.state.snapshot.jobs.get(job_id)
        if job is None or job.attempt != number or job.state is not JobState.RUNNING or job.elastic is None:
            continue
        use = round(measured, 2)
        if job.utilization is None or is_news(job.utilization, use, (rules.up, rules.down)):
            work.jobs.edit(job, replace(job, utilization=use))


def is_news(before: float, now: float, thresholds: tuple[float, ...]) -> bool:
    """Whether a measurement differs from the one before by more than chance, or something follows from it."""
    return abs(before - now) >= USE_STEP or any((before < limit) != (now < limit) for limit in thresholds)


def _idle_gpus(work: Work, item: Scalable, count: int) -> frozenset[str]:
    """Chooses `count` more GPUs on each node of the job that are neither used nor reserved for a waiting job; refuses
    if there are fewer.
    """
    snapshot, job = work.state.snapshot, item.job
    may_have = spare_gpus(snapshot, job) // len(item.parts)
    each = " on each node" if len(item.parts) > 1 else ""
    if count > may_have:
        raise OverLimit(
            f"limits and quotas leave {counted(may_have, 'GPU')} more{each} for job {job.id}: asked for {count}",
            field="gpus",
            asked=count,
            limit=may_have,
        )
    with snapshot.trial() as trial:
        for planned in work.state.plan.planned:
            trial.hold(planned.job_id, planned.held)
        reserved = Reserved(snapshot, work.now)
        idle = [free_gpus_beside(reserved, job, part.slot, item.domain, work.now) for part in item.parts]
    for part, free in zip(item.parts, idle, strict=True):
        if count > len(free):
            raise WrongState(
                f"beside job {job.id}, on node {part.node}, {counted(len(free), 'GPU is', 'GPUs are')} idle and wanted "
                f"by no waiting job: asked for {count} more",
                asked=count,
                idle=len(free),
            )
    return frozenset(gpu for free in idle for gpu in free[:count])
