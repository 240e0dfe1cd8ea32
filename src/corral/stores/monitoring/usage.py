"""The table of the usage of attempts. Its rows outlive their jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Insert, Update, bindparam, delete, func, literal_column, or_, select, tuple_, update

from corral.control.records import UsageRecord, UsageUpdate
from corral.core.model import EndReason, JobKind, JobState, attempt_id, job_of_attempt
from corral.core.monitoring.attempt_usage import Measured
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.database.statements import BatchStatement, insert_into
from corral.stores.schema.monitoring_tables import NOT_OVER, usage_rows

_CHANGING = ["started_at", "ended_at", "end_reason", "outcome"]
_PLANNED = [
    "job_id",
    "number",
    "job_name",
    "user_name",
    "group_name",
    "kind",
    "queue",
    "pool",
    "model",
    "nodes",
    "gpu_milli",
    "gpu_ids",
    "queued_at",
    "planned_at",
]
_MEASURED = [
    "gpu_seconds",
    "busy_gpu_seconds",
    "idle_gpu_seconds",
    "energy_joules",
    "memory_peak_bytes",
    "used_gpu_ids",
]
_KEYS = ["of_job", "of_number"]
#: Later than every time.
_NEVER = 1e18
_COLUMNS = [usage_rows.c[name] for name in (*_PLANNED, *_CHANGING, *_MEASURED)]


def _build_save(database: str) -> Insert:
    statement = insert_into(database, usage_rows)
    changed = {name: statement.excluded[name] for name in (*_PLANNED[2:], *_CHANGING)}
    result: Insert = statement.on_conflict_do_update(index_elements=["job_id", "number"], set_=changed)
    return result


def _build_update(_: str) -> Update:
    return update(usage_rows).where(
        usage_rows.c.job_id == bindparam("of_job"), usage_rows.c.number == bindparam("of_number")
    )


_SAVE = BatchStatement(_build_save, [*_PLANNED, *_CHANGING])
_SAVE_STARTED = BatchStatement(_build_update, ["started_at", *_KEYS])
_SAVE_UPDATES = BatchStatement(_build_update, [*_CHANGING, *_KEYS])
_SAVE_MEASURED = BatchStatement(_build_update, [*_MEASURED, *_KEYS])

_OF_JOB = select(*_COLUMNS).where(usage_rows.c.job_id == bindparam("of_job")).order_by(usage_rows.c.number)
_OPEN = select(*_COLUMNS).where(literal_column(NOT_OVER)).order_by(usage_rows.c.job_id, usage_rows.c.number)
_IN_ORDER = (usage_rows.c.planned_at, usage_rows.c.job_id, usage_rows.c.number)
#: A span includes its beginning and not its end; an attempt that ended the moment it was planned belongs to one span.
_BETWEEN = (
    select(*_COLUMNS)
    .where(
        usage_rows.c.planned_at < bindparam("until"),
        or_(
            usage_rows.c.ended_at.is_(None),
            usage_rows.c.ended_at > bindparam("since"),
            usage_rows.c.planned_at >= bindparam("since"),
        ),
    )
    .order_by(*_IN_ORDER)
)
#: Along the index of the order of planning, from one attempt to the next.
_WANTED = (
    select(*_COLUMNS)
    .where(
        tuple_(*_IN_ORDER) > tuple_(bindparam("of_time"), bindparam("of_job"), bindparam("of_number")),
        usage_rows.c.queued_at < bindparam("until"),
        or_(
            usage_rows.c.ended_at.is_(None),
            usage_rows.c.ended_at > bindparam("since"),
            usage_rows.c.planned_at >= bindparam("since"),
        ),
    )
    .order_by(*_IN_ORDER)
    .limit(bindparam("most"))
)
#: Along the index of ends, from the latest on.
_COMPLETED = (
    select(*_COLUMNS)
    .where(usage_rows.c.outcome == JobState.COMPLETED.value, usage_rows.c.ended_at < bindparam("before"))
    .order_by(usage_rows.c.ended_at.desc(), usage_rows.c.job_id.desc(), usage_rows.c.number.desc())
    .limit(bindparam("most"))
)

#: Along the index of planning: jobs are planned almost in the order in which they were queued.
_FIRST_PLANNED = select(usage_rows.c.queued_at).order_by(*_IN_ORDER).limit(1000).subquery()
_BEGIN = select(func.min(_FIRST_PLANNED.c.queued_at))


class SqlUsageTable:
    """Implements `corral.control.ports.UsageTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def save(self, records: Sequence[UsageRecord]) -> None:
        _SAVE.run(self._connection, [(*_planned(record), *_update_of(record)) for record in records])

    def save_updates(self, updates: Sequence[UsageUpdate]) -> None:
        # An attempt that goes on leaves the columns of its end alone: to set them writes their indexes again.
        going_on = [change for change in updates if change.ended_at is None]
        ended = [change for change in updates if change.ended_at is not None]
        _SAVE_STARTED.run(self._connection, [(change.started_at, *_key(change.attempt_id)) for change in going_on])
        _SAVE_UPDATES.run(self._connection, [(*_update_of(change), *_key(change.attempt_id)) for change in ended])

    def save_measured(self, measured: Mapping[str, Measured]) -> None:
        rows = [(*_measured(what), *_key(attempt)) for attempt, what in measured.items()]
        _SAVE_MEASURED.run(self._connection, rows)

    def of_job(self, job_id: str) -> list[UsageRecord]:
        number = row_codec.job_number(job_id)
        if number is None:
            return []
        return [_record_of(row) for row in self._connection.execute(_OF_JOB, {"of_job": number})]

    def open(self) -> list[UsageRecord]:
        return [_record_of(row) for row in self._connection.execute(_OPEN)]

    def between(self, since: float, until: float) -> list[UsageRecord]:
        rows = self._connection.execute(_BETWEEN, {"since": since, "until": until})
        return [_record_of(row) for row in rows]

    def wanted(self, since: float, until: float, *, after: UsageRecord | None, limit: int) -> list[UsageRecord]:
        time, job, number = (-1.0, -1, -1) if after is None else (after.planned_at, *_key(after.attempt_id))
        place = {"of_time": time, "of_job": job, "of_number": number}
        rows = self._connection.execute(_WANTED, {"since": since, "until": until, "most": limit, **place})
        return [_record_of(row) for row in rows]

    def begins_at(self) -> float | None:
        first: float | None = self._connection.execute(_BEGIN).scalar_one()
        return first

    def completed(self, limit: int, before: float | None = None) -> list[UsageRecord]:
        place = {"most": limit, "before": _NEVER if before is None else before}
        return readable(self._connection, "usage", self._connection.execute(_COMPLETED, place), _record_of)[::-1]

    def prune(self, before: float) -> int:
        return self._connection.execute(delete(usage_rows).where(usage_rows.c.ended_at < before)).rowcount


def _key(attempt: str) -> tuple[int, int]:
    job_id, number = job_of_attempt(attempt)
    return row_codec.required_job_number(job_id), number


def _planned(record: UsageRecord) -> tuple[Any, ...]:
    return (
        *_key(record.attempt_id),
        record.job_name,
        record.user,
        record.group,
        record.kind.value,
        record.queue,
        record.pool,
        record.model,
        record.nodes,
        record.gpu_milli,
        row_codec.to_json(record.gpu_ids),
        record.queued_at,
        record.planned_at,
    )


def _update_of(change: UsageRecord | UsageUpdate) -> tuple[Any, ...]:
    return (
        change.started_at,
        change.ended_at,
        None if change.end_reason is None else change.end_reason.value,
        None if change.outcome is None else change.outcome.value,
    )


def _measured(measured: Measured) -> tuple[Any, ...]:
    return (
        measured.gpu_seconds,
        measured.busy_gpu_seconds,
        measured.idle_gpu_seconds,
        measured.energy_joules,
        measured.memory_peak_bytes,
        row_codec.to_json(measured.used_gpu_ids),
    )


def _record_of(row: Any) -> UsageRecord:
    job_id = row_codec.job_id(row.job_id)
    return UsageRecord(
        attempt_id=attempt_id(job_id, row.number),
        job_id=job_id,
        job_name=row.job_name,
        user=row.user_name,
        group=row.group_name,
        kind=JobKind(row.kind),
        queue=row.queue,
        pool=row.pool,
        model=row.model,
        nodes=row.nodes,
        gpu_milli=row.gpu_milli,
        gpu_ids=tuple(row_codec.from_json(row.gpu_ids)),
        queued_at=row.queued_at,
        planned_at=row.planned_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        end_reason=None if row.end_reason is None else EndReason(row.end_reason),
        outcome=None if row.outcome is None else JobState(row.outcome),
        measured=Measured(
            gpu_seconds=row.gpu_seconds,
            busy_gpu_seconds=row.busy_gpu_seconds,
            idle_gpu_seconds=row.idle_gpu_seconds,
            energy_joules=row.energy_joules,
            memory_peak_bytes=row.memory_peak_bytes,
            used_gpu_ids=tuple(row_codec.from_json(row.used_gpu_ids)),
        ),
    )
