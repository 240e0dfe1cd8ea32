"""Changes of preemption receipts: a receipt is open from the preemption until its cost is known and its job is back."""

from __future__ import annotations

from corral.control.live.changes.audit_events import AuditEvents
from corral.control.live.changes.callers import SYSTEM
from corral.control.live.changes.counted import Counted
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.control.records import ReceiptRecord
from corral.control.scheduling.receipts import abandoned, followed, saw_saved
from corral.core.jobs.lifecycle import Event
from corral.core.model import Job


class ReceiptChanges:
    def __init__(self, tx: Transaction, state: State, audit: AuditEvents) -> None:
        self._tx = tx
        self._state = state
        self._audit = audit
        self._receipts: Counted[int, ReceiptRecord] = Counted()

    @property
    def changes(self) -> int:
        return self._receipts.changes

    def add(self, receipt: ReceiptRecord) -> ReceiptRecord:
        """Store the receipt of a new preemption; returns it with its id."""
        numbered = self._tx.receipts.add(receipt)
        self._state.receipts[numbered.job_id] = numbered
        return numbered

    def save(self, receipt: ReceiptRecord) -> None:
        """Save a receipt that was open."""
        before = self._state.receipts[receipt.job_id]
        if receipt == before:
            return
        if before.saved is None and receipt.saved is not None:
            self._record_cost(receipt)
        self._receipts[receipt.id] = receipt
        if receipt.is_open:
            self._state.receipts[receipt.job_id] = receipt
        else:
            del self._state.receipts[receipt.job_id]

    def follow_job(self, before: Job, after: Job, event: Event) -> None:
        """Updates the job's open receipt, if any, after an event of the job."""
        receipt = self._state.receipts.get(after.id)
        if receipt is None:
            return
        receipt = followed(receipt, before, after, event)
        if not self._state.policies.checkpoints.enabled:
            # No worker reads the checkpoints of jobs: no later save can become known.
            receipt = saw_saved(receipt, after, after.checkpointed_at)
        self.save(receipt)

    def abandon(self, job_id: str) -> None:
        """Close the receipt of a job that is deleted."""
        if job_id in self._state.receipts:
            self.save(abandoned(self._state.receipts[job_id]))

    def flush(self) -> None:
        if self._receipts:
            self._tx.receipts.save(list(self._receipts.values()))

    def _record_cost(self, receipt: ReceiptRecord) -> None:
        detail = {
            "attempt": receipt.attempt,
            "rule": receipt.rule,
            "receipt": receipt.id,
            "for": receipt.for_job,
            "saved": receipt.saved,
            "lost_gpu_seconds": receipt.lost_gpu_seconds,
        }
        self._audit.add(SYSTEM, "job.gave-way", receipt.job_id, owner=receipt.user, detail=detail)
