"""Records of budgets: limits, prices, and the entries of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.people.budgets import Account, Period, Unit


class EntryKind(StrEnum):
    CHARGE = "charge"
    REFUND = "refund"
    GRANT = "grant"


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetRecord:
    account: Account
    unit: Unit
    period: Period
    soft_micro: int | None = None
    hard_micro: int | None = None
    #: when the present period began
    begin: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """An amount that is added to an account and taken from the platform's account of the same book; negative for a
    charge. The store keeps both sides, so that the amounts of all rows add up to zero."""

    #: an entry with the same key, account and unit is written once
    key: str
    kind: EntryKind
    #: the period of this time is charged
    at: float
    account: Account
    unit: Unit
    amount_micro: int
    #: for a charge or refund: the attempt, the time that it covers, and the held GPUs
    attempt_id: str | None = None
    until: float | None = None
    user: str = ""
    job_name: str = ""
    model: str = ""
    gpu_milli: int = 0
    #: for a grant: the operator, and the reason
    actor: str = ""
    note: str = ""
