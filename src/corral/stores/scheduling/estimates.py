"""The table of estimated starts and their outcomes. Its rows outlive their jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Update, bindparam, delete, select, text, update

from corral.core.scheduling.forecast.accuracy import PastEstimate
from corral.stores.database import row_codec
from corral.stores.database.cursors import check_limit
from corral.stores.database.statements import BatchStatement, upsert
from corral.stores.schema.estimate_tables import IS_OPEN, estimate_rows

_KEYS = ["of_job", "of_attempt"]
_ADD = upsert(estimate_rows)
_OPEN = select(estimate_rows).where(text(IS_OPEN)).order_by(estimate_rows.c.made_at, estimate_rows.c.job_id)
_LATEST = (
    select(estimate_rows)
    .where(estimate_rows.c.made_at >= bindparam("since"))
    .order_by(estimate_rows.c.made_at.desc(), estimate_rows.c.job_id.desc())
    .limit(bindparam("most"))
)


def _of_attempt() -> tuple[Any, ...]:
    return (
        estimate_rows.c.job_id == bindparam("of_job"),
        estimate_rows.c.attempt == bindparam("of_attempt"),
        text(IS_OPEN),
    )


def _build_settle(_: str) -> Update:
    return update(estimate_rows).where(*_of_attempt())


def _build_withdraw(_: str) -> Delete:
    return delete(estimate_rows).where(*_of_attempt())


_SETTLE = BatchStatement(_build_settle, ["started_at", *_KEYS])
_WITHDRAW = BatchStatement(_build_withdraw, _KEYS)


class SqlEstimateTable:
    """Implements `corral.control.ports.EstimateTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, made: Sequence[PastEstimate]) -> None:
        _ADD.run(self._connection, [_row(estimate) for estimate in made])

    def open(self) -> list[PastEstimate]:
        return [_estimate_of(row) for row in self._connection.execute(_OPEN)]

    def settle(self, started: Mapping[tuple[str, int], float]) -> None:
        rows = [(at, row_codec.required_job_number(job), attempt) for (job, attempt), at in started.items()]
        _SETTLE.run(self._connection, rows)

    def withdraw(self, attempts: Collection[tuple[str, int]]) -> None:
        _WITHDRAW.run(self._connection, [(row_codec.required_job_number(job), attempt) for job, attempt in attempts])

    def latest(self, limit: int, since: float = 0.0) -> list[PastEstimate]:
        rows = self._connection.execute(_LATEST, {"since": since, "most": check_limit(limit)}).all()
        return [_estimate_of(row) for row in rows][::-1]

    def prune(self, before: float) -> int:
        return self._connection.execute(delete(estimate_rows).where(estimate_rows.c.made_at < before)).rowcount


def _row(estimate: PastEstimate) -> tuple[Any, ...]:
    return (
        row_codec.required_job_number(estimate.job_id),
        estimate.made_at,
        estimate.attempt,
        estimate.queue,
        estimate.user,
        estimate.p50,
        estimate.p90,
        estimate.raw_p50,
        estimate.raw_p90,
        estimate.started_at,
    )


def _estimate_of(row: Any) -> PastEstimate:
    return PastEstimate(
        job_id=row_codec.job_id(row.job_id),
        attempt=row.attempt,
        queue=row.queue,
        user=row.user_name,
        made_at=row.made_at,
        p50=row.p50,
        p90=row.p90,
        raw_p50=row.raw_p50,
        raw_p90=row.raw_p90,
        started_at=row.started_at,
    )
