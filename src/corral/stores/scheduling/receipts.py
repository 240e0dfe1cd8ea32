"""The table of receipts: who was preempted for whom, by which rule, and what came of it. Its rows outlive both jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, or_, select, true

from corral.control.records import Page, ReceiptFilter, ReceiptRecord
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.rows import readable
from corral.stores.database.statements import count_up, replace_rows
from corral.stores.schema.receipt_tables import receipt_rows

_NEWEST_FIRST = Sort(field="receipt", descending=True, type=int)
#: Kept in the JSON text, because nobody asks for receipts by them.
_BODY = (
    "detail",
    "job_name",
    "for_job_name",
    "gpu_milli",
    "work_since",
    "lost_gpu_seconds",
    "saved",
    "ended_at",
    "back_at",
)
_OPEN = select(receipt_rows).where(receipt_rows.c.is_open == true()).order_by(receipt_rows.c.id)
_OF_JOB = (
    select(receipt_rows)
    .where(or_(receipt_rows.c.job_id == bindparam("of_job"), receipt_rows.c.for_job == bindparam("of_job")))
    .order_by(receipt_rows.c.id.desc())
    .limit(bindparam("most"))
)


class SqlReceiptTable:
    """Implements `corral.control.ports.ReceiptTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, receipt: ReceiptRecord) -> ReceiptRecord:
        numbered = replace(receipt, id=count_up(self._connection, "receipt", 1))
        self._connection.execute(insert(receipt_rows), [_row(numbered)])
        return numbered

    def save(self, receipts: Sequence[ReceiptRecord]) -> None:
        replace_rows(self._connection, receipt_rows, [_row(receipt) for receipt in receipts])

    def open(self) -> list[ReceiptRecord]:
        return readable(self._connection, "receipts", self._connection.execute(_OPEN), _record_of)

    def of_job(self, job_id: str, limit: int) -> list[ReceiptRecord]:
        number = row_codec.job_number(job_id)
        if number is None:
            return []
        found = self._connection.execute(_OF_JOB, {"of_job": number, "most": check_limit(limit)})
        return [_record_of(row) for row in found]

    def page(self, where: ReceiptFilter, *, cursor: str | None, limit: int) -> Page[ReceiptRecord]:
        statement = select(receipt_rows).where(*_conditions(where)).order_by(receipt_rows.c.id.desc())
        if cursor is not None:
            statement = statement.where(receipt_rows.c.id < decode_cursor(cursor, _NEWEST_FIRST).id)
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        next_cursor = None
        if len(rows) > limit:
            last = rows[limit - 1].id
            next_cursor = encode_cursor(_NEWEST_FIRST, Position(key=last, id=last))
        return Page(items=tuple(_record_of(row) for row in rows[:limit]), next_cursor=next_cursor)

    def counts(self) -> dict[PreemptionRule, int]:
        statement = select(receipt_rows.c.rule, func.count()).group_by(receipt_rows.c.rule)
        return {PreemptionRule(row[0]): row[1] for row in self._connection.execute(statement)}

    def prune(self, before: float) -> int:
        old = delete(receipt_rows).where(receipt_rows.c.at < before, receipt_rows.c.is_open != true())
        return self._connection.execute(old).rowcount


def _conditions(where: ReceiptFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        or_(receipt_rows.c.user_name == name, receipt_rows.c.for_user == name)
        for name in (where.of, where.user)
        if name is not None
    ]
    if where.rule is not None:
        conditions.append(receipt_rows.c.rule == where.rule.value)
    if where.since is not None:
        conditions.append(receipt_rows.c.at >= where.since)
    return conditions


def _row(receipt: ReceiptRecord) -> dict[str, Any]:
    return {
        "id": receipt.id,
        "at": receipt.at,
        "rule": receipt.rule.value,
        "job_id": row_codec.required_job_number(receipt.job_id),
        "attempt": receipt.attempt,
        "user_name": receipt.user,
        "for_job": row_codec.required_job_number(receipt.for_job),
        "for_user": receipt.for_user,
        "is_open": receipt.is_open,
        "body": row_codec.to_json({name: getattr(receipt, name) for name in _BODY}),
    }


def _record_of(row: Any) -> ReceiptRecord:
    return ReceiptRecord(
        id=row.id,
        at=row.at,
        rule=PreemptionRule(row.rule),
        job_id=row_codec.job_id(row.job_id),
        attempt=row.attempt,
        user=row.user_name,
        for_job=row_codec.job_id(row.for_job),
        for_user=row.for_user,
        is_open=row.is_open,
        **row_codec.from_json(row.body),
    )
