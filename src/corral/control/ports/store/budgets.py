"""The tables of budgets: prices, limits and the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from corral.control.records import BudgetRecord, EntryKind, LedgerEntry
from corral.core.people.budgets import Account, Price, Unit


class BudgetTable(Protocol):
    def prices(self) -> dict[str, Price]:
        """The prices by GPU model."""

    def save_price(self, model: str, price: Price) -> None: ...

    def delete_price(self, model: str) -> None: ...

    def all(self) -> list[BudgetRecord]:
        """Users before groups, by name."""

    def save(self, budget: BudgetRecord) -> None:
        """Insert or replace by account and unit."""

    def delete(self, account: Account, unit: Unit) -> None: ...

    def post(self, entries: Sequence[LedgerEntry]) -> None:
        """Writes both sides of each entry; existing entries are ignored."""

    def charges_of(self, attempt: str) -> list[LedgerEntry]:
        """Oldest first."""

    def charged_until(self, attempt_ids: Collection[str]) -> dict[str, float]:
        """The end of the last charge of each attempt that has one."""

    def sums(self, account: Account, unit: Unit, since: float, until: float) -> Mapping[EntryKind, int]:
        """The amounts of the account's entries within a span, by their kind."""

    def accounts(self) -> list[tuple[Account, Unit]]:
        """The accounts that have entries."""

    def statement(self, account: Account, unit: Unit, since: float, until: float) -> list[LedgerEntry]:
        """The account's entries within a span, oldest first."""

    def imbalance(self) -> int:
        """The sum of all rows of the ledger, which is 0."""
