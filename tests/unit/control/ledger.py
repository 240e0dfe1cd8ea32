"""The expected ledger of ended attempts, computed from their usage records alone."""

from __future__ import annotations

from collections import Counter, defaultdict

from corral.control.ports import Transaction
from corral.control.records import EntryKind, UsageRecord
from corral.core.model import EndReason
from corral.core.people.budgets import Account, AccountKind, Unit

LOST_BY_PLATFORM = (EndReason.NODE_LOST, EndReason.GPU_FAILED, EndReason.LOST)


def due_micro(record: UsageRecord) -> int:
    """GPU-hours of an ended attempt at weight 1, in millionths; 0 for work that the platform has lost unsaved."""
    if record.started_at is None or record.ended_at is None or record.end_reason in LOST_BY_PLATFORM:
        return 0
    milliseconds = max(0, round((record.ended_at - record.planned_at) * 1000))
    return record.gpu_milli * milliseconds * 1_000_000 // (1000 * 3_600_000)


def assert_charged_once(tx: Transaction) -> int:
    """Every ended attempt is charged to its user exactly, the ledger adds up to zero, and each account's balance is
    grants - charges + refunds. Returns the sum of all charges in GPU-hours, in millionths."""
    assert tx.budgets.imbalance() == 0
    due: dict[str, int] = defaultdict(int)
    for record in tx.usage.between(0.0, 1e18):
        if record.ended_at is not None:
            due[record.user] += due_micro(record)
    for user in due:
        account = Account(kind=AccountKind.USER, name=user)
        entries = tx.budgets.statement(account, Unit.GPU_HOURS, 0.0, 1e18)
        of_attempts: dict[str, int] = defaultdict(int)
        refunds = Counter(entry.attempt_id for entry in entries if entry.kind is EntryKind.REFUND)
        for entry in entries:
            assert (entry.amount_micro <= 0) == (entry.kind is EntryKind.CHARGE) or entry.kind is EntryKind.GRANT
            if entry.attempt_id is not None:
                of_attempts[entry.attempt_id] -= entry.amount_micro
        for record in (one for one in tx.usage.between(0.0, 1e18) if one.user == user and one.ended_at is not None):
            # A refund of a part of a charge is rounded, by two millionths of a GPU-hour at most.
            off = abs(of_attempts.get(record.attempt_id, 0) - due_micro(record))
            assert off <= 2 * refunds.get(record.attempt_id, 0), (off, record)
        sums = tx.budgets.sums(account, Unit.GPU_HOURS, 0.0, 1e18)
        kinds = {kind: sum(one.amount_micro for one in entries if one.kind is kind) for kind in EntryKind}
        assert {kind: sums.get(kind, 0) for kind in EntryKind} == kinds
    return sum(due.values())
