"""The first step of a move: the job is asked to save and end, and its next place is held for it, or it is queued again.
With a receipt."""

from __future__ import annotations

from typing import Any

from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import ReceiptRecord
from corral.core.jobs.lifecycle import MoveRequested, StopRequested
from corral.core.model import Allocation, EndReason, Job
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.preemption.preemption import lost_gpu_seconds


def begin_move(
    work: Work, caller: Caller, job: Job, after: Allocation, *, rule: PreemptionRule, detail: str
) -> ReceiptRecord:
    """`detail` is shown to the owner of the job."""
    receipt = _add_receipt(work, job, rule, detail)
    work.jobs.advance(job, MoveRequested(at=work.now, allocation=after, message=detail))
    event: dict[str, Any] = {"attempt": job.attempt, "receipt": receipt.id, "message": detail}
    work.record(caller, "job.moving", job.id, owner=job.user, detail=event)
    return receipt


def begin_requeue(work: Work, caller: Caller, job: Job, *, rule: PreemptionRule, detail: str) -> ReceiptRecord:
    """The same without a place to continue on: the job is queued again when it has ended."""
    receipt = _add_receipt(work, job, rule, detail)
    work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.PREEMPTED, message=detail))
    event: dict[str, Any] = {"attempt": job.attempt, "rule": rule, "receipt": receipt.id, "message": detail}
    work.record(caller, "job.preempting", job.id, owner=job.user, detail=event)
    return receipt


def _add_receipt(work: Work, job: Job, rule: PreemptionRule, detail: str) -> ReceiptRecord:
    assert job.allocation is not None
    return work.receipts.add(
        ReceiptRecord(
            at=work.now,
            rule=rule,
            detail=detail,
            job_id=job.id,
            job_name=job.name,
            user=job.user,
            attempt=job.attempt,
            for_job=job.id,
            for_job_name=job.name,
            for_user=job.user,
            gpu_milli=job.allocation.total_gpu_milli,
            work_since=max(job.started_at or work.now, job.checkpointed_at or 0.0),
            lost_gpu_seconds=lost_gpu_seconds(job, work.now),
        )
    )
