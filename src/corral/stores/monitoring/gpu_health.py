"""Health of GPUs with evidence, checks, and warnings about idle jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Delete, bindparam, delete, select

from corral.control.records import IdleWarning
from corral.core.model import GpuHealth
from corral.core.monitoring.health.model import Condition, Evidence
from corral.core.snapshot.codec import from_plain, to_plain
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.database.statements import BatchStatement, upsert
from corral.stores.monitoring.gpu_checks import SqlCheckRows
from corral.stores.schema.monitoring_tables import condition_rows, idle_warning_rows


def _build_delete_conditions(_: str) -> Delete:
    return delete(condition_rows).where(condition_rows.c.gpu_id == bindparam("of_gpu"))


def _build_delete_warnings(_: str) -> Delete:
    return delete(idle_warning_rows).where(idle_warning_rows.c.job_id == bindparam("of_job"))


_SAVE_CONDITIONS = upsert(condition_rows)
_SAVE_WARNING = upsert(idle_warning_rows)
_DELETE_CONDITIONS = BatchStatement(_build_delete_conditions, ["of_gpu"])
_DELETE_WARNINGS = BatchStatement(_build_delete_warnings, ["of_job"])


class SqlHealthTable(SqlCheckRows):
    """Implements `corral.control.ports.HealthTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def conditions(self) -> dict[str, Condition]:
        rows = self._connection.execute(select(condition_rows).order_by(condition_rows.c.gpu_id))
        found = readable(self._connection, "gpu_conditions", rows, _condition_of)
        return {condition.gpu_id: condition for condition in found}

    def save_conditions(self, conditions: Sequence[Condition]) -> None:
        _SAVE_CONDITIONS.run(
            self._connection,
            [
                (
                    row_codec.storable(item.gpu_id),
                    item.health.value,
                    item.since,
                    row_codec.to_json([to_plain(evidence) for evidence in item.evidence]),
                    row_codec.to_json(item.episodes),
                )
                for item in conditions
            ],
        )

    def delete_conditions(self, gpu_ids: Sequence[str]) -> None:
        _DELETE_CONDITIONS.run(self._connection, [(row_codec.storable(gpu_id),) for gpu_id in gpu_ids])

    def idle_warnings(self) -> dict[str, IdleWarning]:
        rows = self._connection.execute(select(idle_warning_rows).order_by(idle_warning_rows.c.job_id))
        return {
            row_codec.job_id(row.job_id): IdleWarning(
                job_id=row_codec.job_id(row.job_id),
                attempt=row.attempt,
                warned_at=row.warned_at,
                deadline=row.deadline,
                extended_at=row.extended_at,
            )
            for row in rows
        }

    def save_idle_warning(self, warning: IdleWarning) -> None:
        number = row_codec.required_job_number(warning.job_id)
        row = (number, warning.attempt, warning.warned_at, warning.deadline, warning.extended_at)
        _SAVE_WARNING.run(self._connection, [row])

    def delete_idle_warnings(self, job_ids: Sequence[str]) -> None:
        numbers = [number for job_id in job_ids if (number := row_codec.job_number(job_id)) is not None]
        _DELETE_WARNINGS.run(self._connection, [(number,) for number in numbers])


def _condition_of(row: Any) -> Condition:
    return Condition(
        gpu_id=row.gpu_id,
        health=GpuHealth(row.health),
        since=row.since,
        evidence=tuple(from_plain(Evidence, item) for item in row_codec.from_json(row.evidence)),
        episodes=tuple(float(at) for at in row_codec.from_json(row.episodes)),
    )
