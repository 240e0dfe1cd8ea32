"""Charges of attempts to the accounts of their users and groups, in the transaction that ends or settles them.

A charge covers the time since the last charge of the attempt, so that no time is charged twice or left out, whenever
the server is killed. Work that the platform has lost is not charged, and refunded as far as it was. Without prices and
budgets nothing is done.
"""

from __future__ import annotations

from corral.control.live.changes.audit_events import AuditEvents
from corral.control.live.changes.callers import SYSTEM
from corral.control.live.state import State, budget_now
from corral.control.ports import Transaction
from corral.control.records import AttemptRecord, BudgetRecord, EntryKind, LedgerEntry, UsageRecord
from corral.core.copies import replace
from corral.core.jobs.lifecycle import Ended, Event
from corral.core.model import EndReason, Job
from corral.core.people.budgets import (
    BY_PLATFORM,
    Account,
    AccountKind,
    Budget,
    Price,
    Unit,
    accounts_of,
    charges,
    is_platform_end,
    lost_part,
    period_at,
    saved_until,
)
from corral.core.snapshot.changes import PutBudget


class BudgetChanges:
    def __init__(self, tx: Transaction, state: State, now: float, audit: AuditEvents) -> None:
        self._tx = tx
        self._state = state
        self._now = now
        self._audit = audit
        self._unwritten: list[LedgerEntry] = []
        self._posted = 0

    @property
    def changes(self) -> int:
        return self._posted

    def follow_job(self, before: Job, event: Event) -> None:
        """Charge an attempt that has ended."""
        if self._state.accounting_since is None or not isinstance(event, Ended):
            return
        attempt = self._state.attempts.get(before.attempt_id)
        if attempt is None or not attempt.allocation.total_gpu_milli or before.only_gpus:
            return
        if attempt.started_at is not None:
            self._charge_end(before, attempt, event)
        self._state.charged_until.pop(attempt.id, None)

    def settle(self, job: Job, attempt: AttemptRecord) -> None:
        """Charge a running attempt up to now."""
        # A check is no work of the user in whose name it runs.
        if attempt.started_at is not None and attempt.allocation.total_gpu_milli and not job.only_gpus:
            self._charge(job.user, job.name, attempt, self._now)
            self._state.charged_until[attempt.id] = max(self._charged_until(attempt), self._now)

    def charge_overrun(self, record: UsageRecord, until: float) -> None:
        """Charge the time that an ended attempt held its GPUs beyond its recorded end."""
        since = self._state.accounting_since
        if since is None or record.ended_at is None or record.end_reason in (*BY_PLATFORM, EndReason.PREEMPTED):
            return
        self._post_charges(
            accounts_of(record.user, record.group),
            LedgerEntry(
                key="",
                kind=EntryKind.CHARGE,
                at=0.0,
                account=Account(kind=AccountKind.USER, name=record.user),
                unit=Unit.GPU_HOURS,
                amount_micro=0,
                attempt_id=record.attempt_id,
                user=record.user,
                job_name=record.job_name,
                model=record.model,
                gpu_milli=record.gpu_milli,
            ),
            planned_at=record.planned_at,
            since=max(record.ended_at, since),
            until=until,
        )

    def post(self, entry: LedgerEntry) -> None:
        budget = self._state.snapshot.budgets.get((entry.account, entry.unit))
        # A new period begins before the entry is written, so that the entry counts once.
        rolled = None if budget is None else self.rolled(budget)
        self._unwritten.append(entry)
        self._posted += 1
        if budget is not None and rolled is not None:
            self._put(budget, rolled.with_entry(entry.at, entry.amount_micro))

    def rolled(self, budget: Budget) -> Budget:
        """The budget in its present period. A new period is stored, so that it is the same after a restart."""
        if not budget.is_over_at(self._now):
            return budget
        begin, _ = period_at(budget.period, self._now)
        record = BudgetRecord(
            account=budget.account,
            unit=budget.unit,
            period=budget.period,
            soft_micro=budget.soft_micro,
            hard_micro=budget.hard_micro,
            begin=begin,
        )
        self._tx.budgets.save(record)
        self.flush()
        rolled = budget_now(self._tx, record)
        self._state.change(PutBudget(budget=rolled))
        return rolled

    def flush(self) -> None:
        """Write the entries so far; called once more after the last one."""
        if self._unwritten:
            self._tx.budgets.post(self._unwritten)
            self._unwritten = []

    # ---------------------------------------------------------------- inside

    def _charge_end(self, job: Job, attempt: AttemptRecord, event: Ended) -> None:
        end = max(event.at, attempt.planned_at)
        due_until, note = end, "the attempt had ended"
        if is_platform_end(job, event.reason):
            due_until = min(saved_until(job, attempt.planned_at), end)
            note = f"work lost: {(job.stopping_for or event.reason).value.replace('_', ' ')}"
        self._charge(job.user, job.name, attempt, due_until)
        # An end can be reported after the time behind it was charged.
        if self._state.charged_until.get(attempt.id, due_until) > due_until:
            self._refund(attempt.id, attempt.planned_at, due_until, note)

    def _charge(self, user: str, job_name: str, attempt: AttemptRecord, until: float) -> None:
        member = self._state.snapshot.memberships.get(user)
        self._post_charges(
            accounts_of(user, member.group if member else None),
            LedgerEntry(
                key="",
                kind=EntryKind.CHARGE,
                at=0.0,
                account=Account(kind=AccountKind.USER, name=user),
                unit=Unit.GPU_HOURS,
                amount_micro=0,
                attempt_id=attempt.id,
                user=user,
                job_name=job_name,
                model=attempt.allocation.model,
                gpu_milli=attempt.allocation.total_gpu_milli,
            ),
            planned_at=attempt.planned_at,
            since=self._charged_until(attempt),
            until=until,
        )

    def _post_charges(
        self, accounts: tuple[Account, ...], blank: LedgerEntry, *, planned_at: float, since: float, until: float
    ) -> None:
        price = self._state.prices.get(blank.model, Price())
        parts = charges(price=price, gpu_milli=blank.gpu_milli, planned_at=planned_at, since=since, until=until)
        for part in parts:
            # Exact: two charges can begin within a millisecond.
            key = f"charge:{blank.attempt_id}:{part.since!r}"
            for account in accounts:
                for unit, amount in part.amounts.items():
                    self.post(
                        replace(
                            blank,
                            key=key,
                            at=part.since,
                            until=part.until,
                            account=account,
                            unit=unit,
                            amount_micro=-amount,
                        )
                    )

    def _refund(self, attempt_id: str, planned_at: float, since: float, note: str) -> None:
        """Return what was charged for the time from `since` on, in the present period."""
        # The attempt may have been settled in this transaction.
        self.flush()
        for charge in self._tx.budgets.charges_of(attempt_id):
            assert charge.until is not None
            amount = lost_part(
                -charge.amount_micro, planned_at=planned_at, since=charge.at, until=charge.until, lost_since=since
            )
            if amount:
                key = charge.key.replace("charge:", "refund:", 1)
                self.post(
                    replace(
                        charge,
                        key=key,
                        kind=EntryKind.REFUND,
                        at=self._now,
                        until=None,
                        amount_micro=amount,
                        note=note,
                    )
                )

    def _charged_until(self, attempt: AttemptRecord) -> float:
        charged = self._state.charged_until.get(attempt.id, attempt.planned_at)
        return max(charged, self._state.accounting_since or 0.0)

    def _put(self, before: Budget, after: Budget) -> None:
        if after == before:
            return
        # More room can start a waiting job; less room starts none.
        self._state.change(PutBudget(budget=after), needs_cycle=after.spent_micro < before.spent_micro)
        for name, limit in (("soft", after.soft_micro), ("hard", after.hard_micro)):
            if limit is not None and before.spent_at(self._now) < limit <= after.spent_micro:
                owner = after.account.name if after.account.kind is AccountKind.USER else ""
                detail = {"unit": after.unit, "spent_micro": after.spent_micro, "limit_micro": limit}
                self._audit.add(SYSTEM, f"budget.{name}-limit-reached", str(after.account), owner=owner, detail=detail)
