"""Applying the preemptions of a plan: the victim is asked to save and end, both owners are notified, and a receipt is
kept.

The core decides which job is preempted for which. Later changes of a receipt are in `receipts`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.records import ReceiptRecord
from corral.control.scheduling.receipts import saw_saved
from corral.core.fleet.resources import gpus_text
from corral.core.jobs.lifecycle import Event, MoveRequested, StopRequested
from corral.core.model import WHOLE, EndReason, Job
from corral.core.quantities import format_duration
from corral.core.scheduling.plan.plan import Preemption, PreemptionRule


@dataclass(frozen=True, kw_only=True, slots=True)
class LastSave:
    """When the program of a preempted attempt saved last, as far as it is known."""

    job_id: str
    attempt: int
    at: float | None


def preempt(work: Work, preemptions: Sequence[Preemption]) -> None:
    """Ask the victims to save and end. After that they are queued again, or continue on other GPUs."""
    made_for: dict[str, list[ReceiptRecord]] = defaultdict(list)
    for preemption in preemptions:
        made_for[preemption.for_job].append(_preempt(work, preemption))
    for for_job, receipts in made_for.items():
        _record_room_made(work, work.state.snapshot.jobs[for_job], receipts)


def note_last_saves(work: Work, seen: Sequence[LastSave]) -> None:
    """Store in the receipts whether programs saved after they were asked to."""
    for saved in seen:
        receipt, job = work.state.receipts.get(saved.job_id), work.jobs.get(saved.job_id)
        if receipt is not None and job is not None and receipt.attempt == saved.attempt:
            work.receipts.save(saw_saved(receipt, job, saved.at))


def undecided(state: State) -> list[ReceiptRecord]:
    """The receipts of ended attempts of which it is not known yet whether they saved."""
    return [item for item in state.receipts.values() if item.ended_at is not None and item.saved is None]


def _preempt(work: Work, preemption: Preemption) -> ReceiptRecord:
    jobs = work.state.snapshot.jobs
    job, other = jobs[preemption.job_id], jobs[preemption.for_job]
    assert job.allocation is not None, f"{job.id} is preempted and holds nothing"
    receipt = work.receipts.add(
        ReceiptRecord(
            at=work.now,
            rule=preemption.rule,
            detail=preemption.detail,
            job_id=job.id,
            job_name=job.name,
            user=job.user,
            attempt=job.attempt,
            for_job=other.id,
            for_job_name=other.name,
            for_user=other.user,
            gpu_milli=job.allocation.total_gpu_milli,
            work_since=max(job.started_at or work.now, job.checkpointed_at or 0.0),
            lost_gpu_seconds=preemption.lost_gpu_seconds,
        )
    )
    message = _message(receipt)
    event: Event = StopRequested(at=work.now, reason=EndReason.PREEMPTED, for_job=other.id, message=message)
    if preemption.to is not None:
        event = MoveRequested(at=work.now, allocation=preemption.to, for_job=other.id, message=message)
    work.jobs.advance(job, event)
    detail = {
        "attempt": job.attempt,
        "rule": receipt.rule,
        "receipt": receipt.id,
        "for": other.id,
        "for_user": other.user,
        "gpus": receipt.gpu_milli / WHOLE,
        "lost_gpu_seconds": receipt.lost_gpu_seconds,
        "checkpointed_at": job.checkpointed_at,
        "grace_seconds": job.grace_seconds,
        "message": message,
    }
    if preemption.to is not None:
        detail["goes_on_on"] = [grant.node for grant in preemption.to.grants]
    work.record(SYSTEM, "job.preempting", job.id, owner=job.notified_user, detail=detail)
    return receipt


def _record_room_made(work: Work, job: Job, receipts: Sequence[ReceiptRecord]) -> None:
    detail = {
        "jobs": [
            {"job": item.job_id, "user": item.user, "rule": item.rule, "gpus": item.gpu_milli / WHOLE}
            for item in receipts
        ],
        "message": receipts[0].detail,
    }
    work.record(SYSTEM, "job.making-room", job.id, owner=job.user, detail=detail)


def _message(receipt: ReceiptRecord) -> str:
    """The message for the owner of the victim."""
    seconds = receipt.lost_gpu_seconds * WHOLE / receipt.gpu_milli if receipt.gpu_milli else 0.0
    gpus = f"{gpus_text(receipt.gpu_milli)} {'GPU' if receipt.gpu_milli == WHOLE else 'GPUs'}"
    lost = f"{format_duration(round(seconds))} of work on {gpus} is not saved yet"
    whom = f"{receipt.for_job} ({receipt.for_job_name}) of {receipt.for_user}"
    effect = "makes room for" if receipt.rule is PreemptionRule.MOVE else "is preempted for"
    return f"{effect} {whom}: {receipt.detail}; {lost}"
