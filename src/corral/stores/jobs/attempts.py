"""The table of attempts: allocations, times and ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Insert, Update, bindparam, insert, select, tuple_, update

from corral.control.ports import StoreConflict
from corral.control.records import AttemptRecord
from corral.core.counts import counted, noun_for
from corral.core.model import EndReason, attempt_id
from corral.stores.database import row_codec
from corral.stores.database.commit_guard import refuse
from corral.stores.database.rows import readable
from corral.stores.database.statements import CHUNK, BatchStatement
from corral.stores.schema.tables import attempt_rows

_OUTCOME = ["started_at", "ended_at", "end_reason", "exit_code", "message"]
_COLUMNS = ["job_id", "number", "planned_at", "allocation", *_OUTCOME]
_ATTEMPT = [attempt_rows.c[name] for name in _COLUMNS]


def _build_insert(_: str) -> Insert:
    return insert(attempt_rows)


def _build_save(_: str) -> Update:
    return update(attempt_rows).where(
        attempt_rows.c.job_id == bindparam("of_job"), attempt_rows.c.number == bindparam("of_number")
    )


_INSERT = BatchStatement(_build_insert, _COLUMNS)
_SAVE = BatchStatement(_build_save, [*_OUTCOME, "of_job", "of_number"])

_OF_JOB = select(*_ATTEMPT).where(attempt_rows.c.job_id == bindparam("of_job")).order_by(attempt_rows.c.number)
_ALL = select(*_ATTEMPT).order_by(attempt_rows.c.planned_at, attempt_rows.c.job_id, attempt_rows.c.number)


class SqlAttemptTable:
    """Implements `corral.control.ports.AttemptTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, attempts: Sequence[AttemptRecord]) -> None:
        rows = [
            (
                row_codec.required_job_number(attempt.job_id),
                attempt.number,
                attempt.planned_at,
                row_codec.to_json(row_codec.dump_allocation(attempt.allocation)),
                *_outcome(attempt),
            )
            for attempt in attempts
        ]
        _INSERT.run(self._connection, rows)

    def save(self, attempts: Sequence[AttemptRecord]) -> None:
        rows = [
            (*_outcome(attempt), row_codec.required_job_number(attempt.job_id), attempt.number) for attempt in attempts
        ]
        saved = _SAVE.run(self._connection, rows)
        if saved != len(rows):
            raise refuse(
                self._connection,
                StoreConflict(
                    f"{len(rows) - saved} of {counted(len(rows), 'attempt')} "
                    f"{noun_for(len(rows) - saved, 'is', 'are')} not there"
                ),
            )

    def get(self, attempt_ids: Collection[str]) -> dict[str, AttemptRecord]:
        keys = [key for key in map(row_codec.attempt_key, attempt_ids) if key is not None]
        found: dict[str, AttemptRecord] = {}
        for start in range(0, len(keys), CHUNK):
            wanted = tuple_(attempt_rows.c.job_id, attempt_rows.c.number).in_(keys[start : start + CHUNK])
            rows = self._connection.execute(select(*_ATTEMPT).where(wanted))
            records = readable(self._connection, "attempts", rows, _record_of, _name_of)
            found |= {record.id: record for record in records}
        return found

    def of_job(self, job_id: str) -> list[AttemptRecord]:
        number = row_codec.job_number(job_id)
        if number is None:
            return []
        rows = self._connection.execute(_OF_JOB, {"of_job": number})
        return readable(self._connection, "attempts", rows, _record_of, _name_of)

    def all_allocations(self) -> Iterator[AttemptRecord]:
        """Read in portions, as there may be very many: iterate before the transaction ends."""
        for row in self._connection.execute(_ALL, execution_options={"yield_per": 1000}):
            yield _record_of(row)


def _outcome(attempt: AttemptRecord) -> tuple[Any, ...]:
    return (
        attempt.started_at,
        attempt.ended_at,
        None if attempt.end_reason is None else attempt.end_reason.value,
        attempt.exit_code,
        row_codec.to_json(attempt.message),
    )


def _record_of(row: Any) -> AttemptRecord:
    job, number, planned_at, allocation, started_at, ended_at, end_reason, exit_code, message = row
    job_id = row_codec.job_id(job)
    return AttemptRecord(
        id=attempt_id(job_id, number),
        job_id=job_id,
        number=number,
        allocation=row_codec.load_allocation(row_codec.from_json(allocation)),
        planned_at=planned_at,
        started_at=started_at,
        ended_at=ended_at,
        end_reason=None if end_reason is None else EndReason(end_reason),
        exit_code=exit_code,
        message=row_codec.from_json(message),
    )


def _name_of(row: Any) -> str:
    return f"{row[0]}.{row[1]}"
