"""Changes of a preemption receipt after its first line: what was saved, when the attempt ended, when its job came back.

Pure: takes a receipt and an event of its job, and returns the changed receipt. The caller stores it.
"""

from __future__ import annotations

from dataclasses import replace

from corral.control.records import ReceiptRecord
from corral.core.jobs.lifecycle import Ended, Event, Up
from corral.core.model import WHOLE, Job


def followed(receipt: ReceiptRecord, before: Job, after: Job, event: Event) -> ReceiptRecord:
    """The receipt after an event of the victim."""
    match event:
        case Ended(at=at) if before.attempt == receipt.attempt:
            receipt = replace(receipt, ended_at=max(receipt.at, at))
            if _is_within(receipt, after.checkpointed_at):
                receipt = settled(receipt, after.checkpointed_at)
        case Up(at=at) if after.attempt > receipt.attempt and receipt.back_at is None:
            receipt = replace(receipt, back_at=at)
        case _:
            pass
    return _closed(receipt, after)


def settled(receipt: ReceiptRecord, saved_at: float | None) -> ReceiptRecord:
    """The receipt once it is known when the program of the ended attempt saved last. What it lost is what it did after
    that."""
    if receipt.ended_at is None or receipt.saved is not None:
        return receipt
    since = receipt.work_since
    if saved_at is not None:
        since = max(since, min(saved_at, receipt.ended_at))
    lost = max(0.0, receipt.ended_at - since) * receipt.gpu_milli / WHOLE
    return replace(receipt, saved=_is_within(receipt, saved_at), lost_gpu_seconds=lost)


def saw_saved(receipt: ReceiptRecord, job: Job, saved_at: float | None) -> ReceiptRecord:
    """The receipt after the checkpoints of the job were read. After the end of the attempt, the result is final."""
    return _closed(settled(receipt, saved_at), job)


def abandoned(receipt: ReceiptRecord) -> ReceiptRecord:
    """The receipt of a job that is gone: nothing more is to come."""
    return replace(receipt, is_open=False)


def _is_within(receipt: ReceiptRecord, saved_at: float | None) -> bool:
    return saved_at is not None and receipt.ended_at is not None and receipt.at <= saved_at


def _closed(receipt: ReceiptRecord, job: Job) -> ReceiptRecord:
    """Closes the receipt once the saved work is known and the job runs again or has ended."""
    is_back = receipt.back_at is not None or not job.state.is_active
    is_over = receipt.ended_at is not None and receipt.saved is not None
    return replace(receipt, is_open=not (is_back and is_over))
