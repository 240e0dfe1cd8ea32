"""Prices, budgets and the ledger. The ledger is only added to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Insert, delete, func, select, tuple_

from corral.control.records import BudgetRecord, EntryKind, LedgerEntry
from corral.core.model import attempt_id, job_of_attempt
from corral.core.people.budgets import Account, AccountKind, Period, Price, Unit
from corral.stores.database import row_codec
from corral.stores.database.statements import CHUNK, BatchStatement, insert_into, replace_rows
from corral.stores.schema.budget_tables import budget_rows, gpu_price_rows, ledger_rows

#: `side` of a row: the account itself, or the platform's account of the same book.
_ACCOUNT, _PLATFORM = 0, 1
_BODY = ("user", "job_name", "model", "gpu_milli", "actor", "note")


def _build_post(database: str) -> Insert:
    result: Insert = insert_into(database, ledger_rows).on_conflict_do_nothing()
    return result


_POST = BatchStatement(_build_post, [column.name for column in ledger_rows.columns])


class SqlBudgetTable:
    """Implements `corral.control.ports.BudgetTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def prices(self) -> dict[str, Price]:
        rows = self._connection.execute(select(gpu_price_rows).order_by(gpu_price_rows.c.model))
        return {row.model: Price(weight_micro=row.weight_micro, money_micro=row.money_micro) for row in rows}

    def save_price(self, model: str, price: Price) -> None:
        row = {"model": model, "weight_micro": price.weight_micro, "money_micro": price.money_micro}
        replace_rows(self._connection, gpu_price_rows, [row])

    def delete_price(self, model: str) -> None:
        self._connection.execute(delete(gpu_price_rows).where(gpu_price_rows.c.model == model))

    def all(self) -> list[BudgetRecord]:
        table = budget_rows.c
        order = (table.account_kind.desc(), table.account_name, table.unit)
        return [
            BudgetRecord(
                account=_account(row),
                unit=Unit(row.unit),
                period=Period(row.period),
                soft_micro=row.soft_micro,
                hard_micro=row.hard_micro,
                begin=row.period_begin,
            )
            for row in self._connection.execute(select(budget_rows).order_by(*order))
        ]

    def save(self, budget: BudgetRecord) -> None:
        row = {
            "account_kind": budget.account.kind.value,
            "account_name": budget.account.name,
            "unit": budget.unit.value,
            "period": budget.period.value,
            "soft_micro": budget.soft_micro,
            "hard_micro": budget.hard_micro,
            "period_begin": budget.begin,
        }
        replace_rows(self._connection, budget_rows, [row])

    def delete(self, account: Account, unit: Unit) -> None:
        table = budget_rows.c
        self._connection.execute(
            delete(budget_rows).where(
                table.account_kind == account.kind.value, table.account_name == account.name, table.unit == unit.value
            )
        )

    def post(self, entries: Sequence[LedgerEntry]) -> None:
        _POST.run(self._connection, [row for entry in entries for row in _rows(entry)])

    def charges_of(self, attempt: str) -> list[LedgerEntry]:
        table, (job, number) = ledger_rows.c, _key(attempt)
        rows = self._connection.execute(
            select(ledger_rows)
            .where(table.job_id == job, table.attempt == number, table.side == _ACCOUNT)
            .where(table.kind == EntryKind.CHARGE.value)
            .order_by(table.at, table.account_kind, table.unit)
        )
        return [_entry(row) for row in rows]

    def charged_until(self, attempt_ids: Collection[str]) -> dict[str, float]:
        table, found = ledger_rows.c, {}
        keys = [_key(attempt_id) for attempt_id in attempt_ids]
        for begin in range(0, len(keys), CHUNK):
            rows = self._connection.execute(
                select(table.job_id, table.attempt, func.max(table.until))
                .where(tuple_(table.job_id, table.attempt).in_(keys[begin : begin + CHUNK]))
                .where(table.kind == EntryKind.CHARGE.value)
                .group_by(table.job_id, table.attempt)
            )
            found.update({attempt_id(row_codec.job_id(job), number): until for job, number, until in rows})
        return found

    def sums(self, account: Account, unit: Unit, since: float, until: float) -> Mapping[EntryKind, int]:
        table = ledger_rows.c
        rows = self._connection.execute(
            select(table.kind, func.sum(table.amount_micro))
            .where(*_of(account, unit), table.at >= since, table.at < until)
            .group_by(table.kind)
        )
        return {EntryKind(kind): int(amount) for kind, amount in rows}

    def accounts(self) -> list[tuple[Account, Unit]]:
        table = ledger_rows.c
        columns = (table.account_kind, table.account_name, table.unit)
        order = (table.account_kind.desc(), table.account_name, table.unit)
        rows = self._connection.execute(select(*columns).distinct().order_by(*order))
        return [(_account(row), Unit(row.unit)) for row in rows]

    def statement(self, account: Account, unit: Unit, since: float, until: float) -> list[LedgerEntry]:
        table = ledger_rows.c
        rows = self._connection.execute(
            select(ledger_rows)
            .where(*_of(account, unit), table.at >= since, table.at < until)
            .order_by(table.at, table.entry)
        )
        return [_entry(row) for row in rows]

    def imbalance(self) -> int:
        return int(
            self._connection.execute(select(func.coalesce(func.sum(ledger_rows.c.amount_micro), 0))).scalar_one()
        )


def _of(account: Account, unit: Unit) -> tuple[Any, ...]:
    table = ledger_rows.c
    return (
        table.account_kind == account.kind.value,
        table.account_name == account.name,
        table.unit == unit.value,
        table.side == _ACCOUNT,
    )


def _key(attempt: str) -> tuple[int, int]:
    job_id, number = job_of_attempt(attempt)
    return row_codec.required_job_number(job_id), number


def _account(row: Any) -> Account:
    return Account(kind=AccountKind(row.account_kind), name=row.account_name)


def _rows(entry: LedgerEntry) -> list[tuple[Any, ...]]:
    job, number = (None, None) if entry.attempt_id is None else _key(entry.attempt_id)
    body = row_codec.to_json({name: getattr(entry, name) for name in _BODY})
    return [
        (
            entry.key,
            entry.account.kind.value,
            row_codec.storable(entry.account.name),
            entry.unit.value,
            side,
            entry.kind.value,
            entry.at,
            entry.until,
            amount,
            job,
            number,
            body,
        )
        for side, amount in ((_ACCOUNT, entry.amount_micro), (_PLATFORM, -entry.amount_micro))
    ]


def _entry(row: Any) -> LedgerEntry:
    return LedgerEntry(
        key=row.entry,
        kind=EntryKind(row.kind),
        at=row.at,
        until=row.until,
        account=_account(row),
        unit=Unit(row.unit),
        amount_micro=row.amount_micro,
        attempt_id=None if row.job_id is None else attempt_id(row_codec.job_id(row.job_id), row.attempt),
        **row_codec.from_json(row.body),
    )
