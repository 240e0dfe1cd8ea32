"""The unit of work: all changes of one transaction, collected and then written together.

A use case receives a `Work`. It validates the request, then changes jobs, receipts, scores and other rows through the
parts of the `Work` (`work.jobs`, `work.receipts`, …) or directly through the tables of `work.tx`, and adds lines to the
audit log with `work.record`. Changes of jobs and of the cluster are in the snapshot at once, so that the next use case
of the same transaction sees them. `flush` writes the collected rows, and after the commit the controller sends
`work.effects` to the engines.

If the transaction fails, nothing is written and the state is loaded from the store again. `work.changes` counts the
changes so far, so that a turn knows whether a refused request has changed anything and must be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.control.live.changes.attempt_changes import AttemptChanges
from corral.control.live.changes.audit_events import AuditEvents
from corral.control.live.changes.budget_changes import BudgetChanges
from corral.control.live.changes.callers import PLATFORM, SYSTEM, Caller
from corral.control.live.changes.job_changes import JobChanges
from corral.control.live.changes.pending_effects import PendingEffects
from corral.control.live.changes.receipt_changes import ReceiptChanges
from corral.control.live.changes.request_mix_changes import RequestMixChanges
from corral.control.live.changes.score_changes import ScoreChanges
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.control.records import EventRecord
from corral.core.snapshot.changes import Change

__all__ = ["PLATFORM", "SYSTEM", "Caller", "Work"]


class Work:
    def __init__(self, tx: Transaction, state: State, now: float) -> None:
        self.tx = tx
        self.state = state
        self.now = now
        self.effects = PendingEffects()
        self._audit = AuditEvents(tx, now)
        self._scores = ScoreChanges(tx, state, now)
        self.mixes = RequestMixChanges(tx, state)
        self.receipts = ReceiptChanges(tx, state, self._audit)
        self.budgets = BudgetChanges(tx, state, now, self._audit)
        self.attempts = AttemptChanges(tx, state, self.effects, self._scores, self.budgets)
        self.jobs = JobChanges(
            tx,
            state,
            now,
            audit=self._audit,
            effects=self.effects,
            attempts=self.attempts,
            scores=self._scores,
            budgets=self.budgets,
            receipts=self.receipts,
            mixes=self.mixes,
        )

    def change(self, *changes: Change, needs_cycle: bool = True) -> None:
        """Change the snapshot. `needs_cycle` is false for changes that no scheduling decision depends on."""
        self.state.change(*changes, needs_cycle=needs_cycle)

    def record(
        self, caller: Caller, action: str, subject: str, *, owner: str = "", detail: Mapping[str, Any] | None = None
    ) -> None:
        """Add a line to the audit log."""
        self._audit.add(caller, action, subject, owner=owner, detail=detail)

    @property
    def changes(self) -> int:
        """How many changes were made so far to the transaction, the state, and the collected rows and effects."""
        parts = (self.effects, self._audit, self._scores, self.mixes, self.receipts, self.attempts, self.jobs)
        counted = sum(part.changes for part in parts) + self.budgets.changes
        return self.tx.changes + self.state.changes + counted

    def flush(self) -> list[EventRecord]:
        """Write everything to the transaction. Returns the events with their ids."""
        self.jobs.flush()
        self.attempts.flush()
        self.receipts.flush()
        self._scores.flush()
        self.budgets.flush()
        self.mixes.flush()
        return self._audit.flush()
