"""Active checks of GPUs: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from corral.control.records import CheckCause, CheckRecord, CheckState
from corral.core.monitoring.checks import Check, Measurement, Problem
from corral.core.snapshot.codec import from_plain, to_plain
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.schema.monitoring_tables import check_rows


class SqlCheckRows:
    """The part of `corral.control.ports.HealthTable` for checks."""

    _connection: Connection

    def add_checks(self, records: Sequence[CheckRecord]) -> None:
        self._connection.execute(insert(check_rows), [_values(record) for record in records])

    def save_check(self, record: CheckRecord) -> None:
        number = row_codec.required_job_number(record.job_id)
        self._connection.execute(update(check_rows).where(check_rows.c.job_id == number).values(_values(record)))

    def check(self, job_id: str) -> CheckRecord | None:
        number = row_codec.job_number(job_id)
        if number is None:
            return None
        found = self._read(select(check_rows).where(check_rows.c.job_id == number))
        return found[0] if found else None

    def open_checks(self) -> list[CheckRecord]:
        wanted = select(check_rows).where(check_rows.c.state == CheckState.OPEN.value)
        return self._read(wanted.order_by(check_rows.c.job_id))

    def checks(
        self, *, gpu_id: str | None = None, node: str | None = None, before: str | None = None, limit: int
    ) -> list[CheckRecord]:
        wanted = select(check_rows)
        if gpu_id is not None:
            wanted = wanted.where(check_rows.c.gpu_id == row_codec.storable(gpu_id))
        if node is not None:
            wanted = wanted.where(check_rows.c.node == row_codec.storable(node))
        if before is not None:
            wanted = wanted.where(check_rows.c.job_id < row_codec.required_job_number(before))
        return self._read(wanted.order_by(check_rows.c.job_id.desc()).limit(limit))

    def latest_checks(self, model: str | None = None) -> list[CheckRecord]:
        latest = (
            select(func.max(check_rows.c.job_id))
            .where(check_rows.c.state.in_([CheckState.PASSED.value, CheckState.FAILED.value]))
            .group_by(check_rows.c.gpu_id)
        )
        wanted = select(check_rows).where(check_rows.c.job_id.in_(latest))
        if model is not None:
            wanted = wanted.where(check_rows.c.model == row_codec.storable(model))
        return self._read(wanted.order_by(check_rows.c.job_id))

    def prune_checks(self, before: float) -> int:
        # The latest check of each GPU stays: others are compared with it.
        kept = select(func.max(check_rows.c.job_id)).group_by(check_rows.c.gpu_id)
        old = (check_rows.c.requested_at < before) & (check_rows.c.state != CheckState.OPEN.value)
        return self._connection.execute(delete(check_rows).where(old & check_rows.c.job_id.not_in(kept))).rowcount

    def _read(self, wanted: Any) -> list[CheckRecord]:
        return list(readable(self._connection, "gpu_checks", self._connection.execute(wanted), _record_of))


def _values(record: CheckRecord) -> dict[str, Any]:
    return {
        "job_id": row_codec.required_job_number(record.job_id),
        "gpu_id": row_codec.storable(record.gpu_id),
        "node": row_codec.storable(record.node),
        "model": row_codec.storable(record.model),
        "state": record.state.value,
        "requested_at": record.requested_at,
        "body": row_codec.to_json(
            {
                "cause": record.cause.value,
                "by": record.requested_by,
                "checks": [check.value for check in record.checks],
                "ended_at": record.ended_at,
                "is_simulated": record.is_simulated,
                "measurements": [to_plain(item) for item in record.measurements],
                "problems": [to_plain(item) for item in record.problems],
                "skipped": list(record.skipped),
            }
        ),
    }


def _record_of(row: Any) -> CheckRecord:
    body = row_codec.from_json(row.body)
    return CheckRecord(
        job_id=row_codec.job_id(row.job_id),
        gpu_id=row.gpu_id,
        node=row.node,
        model=row.model,
        cause=CheckCause(body["cause"]),
        requested_by=body["by"],
        requested_at=row.requested_at,
        checks=tuple(Check(name) for name in body["checks"]),
        state=CheckState(row.state),
        ended_at=body["ended_at"],
        is_simulated=body["is_simulated"],
        measurements=tuple(from_plain(Measurement, item) for item in body["measurements"]),
        problems=tuple(from_plain(Problem, item) for item in body["problems"]),
        skipped=tuple(body["skipped"]),
    )
