"""The table of jobs. Columns for what lists filter and sort by, JSON for the rest of a job.

This module decides how a job becomes a row and back, and how pages are cut; the control layer and `advance` decide
which changes are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Insert,
    Select,
    Update,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    tuple_,
    update,
)

from corral.control.ports import STEADY_FIELDS, NameTaken, StoreConflict
from corral.control.records import EVERY_JOB, JobFilter, JobRecord, JobSpec, Page
from corral.core.counts import counted
from corral.core.jobs.job_fields import KEPT_BY_SPEC
from corral.core.model import Job, JobKind, JobState
from corral.stores.database import row_codec
from corral.stores.database.commit_guard import refuse
from corral.stores.database.cursors import Key, Position, Sort, check_limit, decode_cursor, encode_cursor, parse_sort
from corral.stores.database.rows import readable
from corral.stores.database.statements import CHUNK, BatchStatement, Row, count_up, insert_into
from corral.stores.jobs.job_body import COLUMN_FIELDS, decode_body, encode_body
from corral.stores.jobs.job_filters import NEAR_COLUMNS, is_near, job_conditions, needs_scan, unindexed
from corral.stores.schema.tables import NOT_ENDED, job_rows

SORTS: dict[str, type[Key]] = {"id": int, "name": str, "priority": int, "created_at": float}

#: Jobs that a page is looked for in first: their rows cost less than a look at a million names.
NEAR = 10_000

_KINDS = {kind.value: kind for kind in JobKind}
_STATES = {state.value: state for state in JobState}

#: the columns of a job in the order of `encode_job`; `spec` follows them
_COLUMNS = [*("user_name" if name == "user" else name for name in COLUMN_FIELDS), "body"]
#: fields of a spec that a search looks at
_SEARCHED = tuple(field.attribute for field in KEPT_BY_SPEC if field.is_searched)
_JOB = [job_rows.c[name] for name in _COLUMNS]
_RECORD = [*_JOB, job_rows.c.spec]
#: columns that `save` sets: all except the id
_SET = [name for name in _COLUMNS if name != "id"]
#: columns that `save_progress` sets: SQLite writes an index again if one of its columns is set, even to the same value
_PROGRESS = [
    column
    for column, field in zip(_COLUMNS, (*COLUMN_FIELDS, "body"), strict=True)
    if field not in ("id", *STEADY_FIELDS)
]


def _build_insert(database: str) -> Insert:
    # A taken name is skipped here and found by the row count: on PostgreSQL an error would end the transaction
    # before the name could be looked up.
    result: Insert = insert_into(database, job_rows).on_conflict_do_nothing(index_elements=["user_name", "name"])
    return result


def _build_save(_: str) -> Update:
    return update(job_rows).where(job_rows.c.id == bindparam("of_id"), job_rows.c.version == bindparam("old_version"))


def _build_delete(_: str) -> Delete:
    return delete(job_rows).where(job_rows.c.id == bindparam("of_id"))


_INSERT = BatchStatement(_build_insert, [*_COLUMNS, "spec", "search_text"])
_SAVE = BatchStatement(_build_save, ["of_id", *_SET, "old_version"])
_SAVE_PROGRESS = BatchStatement(_build_save, ["of_id", *_PROGRESS, "old_version"])
_progress_of = itemgetter(0, *(_COLUMNS.index(name) for name in _PROGRESS))
_DELETE = BatchStatement(_build_delete, ["of_id"])

_GET = select(*_RECORD).where(job_rows.c.id == bindparam("of_id"))
_LIVE = select(*_JOB).where(literal_column(NOT_ENDED)).order_by(job_rows.c.id)
_ENDED = f"NOT ({NOT_ENDED})"
_HOLDER = select(job_rows.c.id).where(
    job_rows.c.user_name == bindparam("user_name"), job_rows.c.name == bindparam("name")
)


class SqlJobTable:
    """Implements `corral.control.ports.JobTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def skip_ids(self, used: int) -> int:
        skipped = used - count_up(self._connection, "job", 0)
        if skipped > 0:
            count_up(self._connection, "job", skipped)
        return max(0, skipped)

    def next_ids(self, count: int) -> list[str]:
        if count < 1:
            return []
        last = count_up(self._connection, "job", count)
        return [row_codec.job_id(number) for number in range(last - count + 1, last + 1)]

    def add(self, records: Sequence[JobRecord]) -> None:
        rows = [
            (*encode_job(record.job), row_codec.encode_spec(record.spec), _search_text(record.spec))
            for record in records
        ]
        if _INSERT.run(self._connection, rows) != len(rows):
            raise refuse(self._connection, self._taken(records))

    def save(self, jobs: Sequence[Job]) -> None:
        self._save(_SAVE, [(*encode_job(job), job.version - 1) for job in jobs])

    def save_progress(self, jobs: Sequence[Job]) -> None:
        self._save(_SAVE_PROGRESS, [(*_progress_of(encode_job(job)), job.version - 1) for job in jobs])

    def _save(self, statement: BatchStatement, rows: list[Row]) -> None:
        saved = statement.run(self._connection, rows)
        if saved != len(rows):
            raise refuse(
                self._connection, StoreConflict(f"{len(rows) - saved} of {counted(len(rows), 'job')} changed meanwhile")
            )

    def save_spec(self, job_id: str, spec: JobSpec) -> None:
        number = row_codec.job_number(job_id)
        values = {"spec": row_codec.encode_spec(spec), "search_text": _search_text(spec)}
        self._connection.execute(update(job_rows).where(job_rows.c.id == number).values(values))

    def get(self, job_id: str) -> JobRecord | None:
        number = row_codec.job_number(job_id)
        if number is None:
            return None
        row = self._connection.execute(_GET, {"of_id": number}).first()
        return None if row is None else _record_of(row)

    def find(self, user: str | None, name: str) -> list[JobRecord]:
        statement = select(*_RECORD).where(job_rows.c.name == name).order_by(job_rows.c.id.desc())
        if user is not None:
            statement = statement.where(job_rows.c.user_name == user)
        return [_record_of(row) for row in self._connection.execute(statement)]

    def find_task(self, user: str, task: str) -> JobRecord | None:
        # The name of a task's job ends with the task's name; the prefix was set when the job was submitted.
        statement = (
            select(*_RECORD)
            .where(job_rows.c.user_name == user, job_rows.c.name.endswith(task, autoescape=True))
            .order_by(job_rows.c.id.desc())
        )
        found = map(_record_of, self._connection.execute(statement))
        return next((record for record in found if record.spec.task == task), None)

    def names_taken(self, user: str, names: Sequence[str]) -> set[str]:
        taken: set[str] = set()
        for start in range(0, len(names), CHUNK):
            statement = select(job_rows.c.name).where(
                job_rows.c.user_name == user, job_rows.c.name.in_(names[start : start + CHUNK])
            )
            taken.update(self._connection.execute(statement).scalars())
        return taken

    def delete(self, job_ids: Sequence[str]) -> None:
        numbers = [number for number in map(row_codec.job_number, job_ids) if number is not None]
        _DELETE.run(self._connection, [(number,) for number in numbers])

    def some(self, job_ids: Sequence[str]) -> dict[str, Job]:
        numbers = [number for number in map(row_codec.job_number, job_ids) if number is not None]
        found: dict[str, Job] = {}
        for start in range(0, len(numbers), CHUNK):
            statement = select(*_JOB).where(job_rows.c.id.in_(numbers[start : start + CHUNK]))
            jobs = readable(self._connection, "jobs", self._connection.execute(statement), decode_job)
            found.update({job.id: job for job in jobs})
        return found

    def ended(self, after: str | None, limit: int) -> list[JobRecord]:
        first = 0 if after is None else row_codec.job_number(after) or 0
        statement = select(*_RECORD).where(literal_column(_ENDED), job_rows.c.id > first)
        rows = self._connection.execute(statement.order_by(job_rows.c.id).limit(check_limit(limit)))
        return [_record_of(row) for row in rows]

    def count_ended(self) -> int:
        statement = select(func.count()).select_from(job_rows).where(literal_column(_ENDED))
        found: int = self._connection.execute(statement).scalar_one()
        return found

    def live(self) -> list[Job]:
        return readable(self._connection, "jobs", self._connection.execute(_LIVE), decode_job)

    def page(self, where: JobFilter, *, sort: str, cursor: str | None, limit: int) -> Page[JobRecord]:
        order = parse_sort(sort, SORTS)
        column: ColumnElement[Any] = job_rows.c[order.field]
        check_limit(limit)
        position = None if cursor is None else decode_cursor(cursor, order)
        near = self._near(where, order, position, limit) if is_near(where, by_id=order.field == "id") else []
        # First the ids, then the rows: sorting whole rows, most of them not on the page, takes three times as long.
        wanted: Any = near if len(near) > limit else _wanted(where, order, position, limit)
        statement = select(*_RECORD).where(job_rows.c.id.in_(wanted))
        rows = self._connection.execute(statement.order_by(*_order(column, order))).all()
        next_cursor = None
        if len(rows) > limit:
            last = rows[limit - 1]
            next_cursor = encode_cursor(order, Position(key=last._mapping[column], id=last.id))
        items = readable(self._connection, "jobs", rows[:limit], _record_of)
        return Page(items=tuple(items), next_cursor=next_cursor)

    def _near(self, where: JobFilter, order: Sort, position: Position | None, limit: int) -> list[int]:
        """The ids of a page as far as it consists of the first jobs of the list, whether or not the filter has them."""
        first = select(*(job_rows.c[name] for name in NEAR_COLUMNS)).limit(NEAR)
        if position is not None:
            first = first.where(_behind(job_rows.c[order.field], position, order))
        near = first.order_by(*_order(job_rows.c[order.field], order)).subquery("near")
        statement = select(near.c.id).where(*job_conditions(where, near.c)).limit(limit + 1)
        return list(
            self._connection.execute(statement.order_by(*_order(near.c[order.field], order, near.c.id))).scalars()
        )

    def counts(self, where: JobFilter = EVERY_JOB) -> dict[str, int]:
        state = unindexed(job_rows.c.state) if needs_scan(where) else job_rows.c.state
        statement = select(state, func.count()).where(*job_conditions(where)).group_by(state)
        return {row[0]: row[1] for row in self._connection.execute(statement)}

    def _taken(self, records: Sequence[JobRecord]) -> NameTaken:
        """The error for the first name that belongs to another job; call it only if one does."""
        for record in records:
            job = record.job
            holder = self._connection.execute(_HOLDER, {"user_name": job.user, "name": job.name}).scalar()
            if holder != row_codec.job_number(job.id):
                return NameTaken("job", job.name)
        raise AssertionError("a job was not added although no name is taken")


def _sorts_afterwards(where: JobFilter, order: Sort) -> bool:
    """Whether rows are sorted after reading. The index has them in the order of ids, except that ranges of ids
    (`id_prefix`) are read one by one.
    """
    return bool(where.id_prefix) if order.field == "id" else needs_scan(where)


def _wanted(where: JobFilter, order: Sort, position: Position | None, limit: int) -> Select[Any]:
    """The ids of a page, by a look at all jobs that the filter has."""
    column: ColumnElement[Any] = job_rows.c[order.field]
    by = unindexed(column) if _sorts_afterwards(where, order) else column
    wanted = select(job_rows.c.id).where(*job_conditions(where)).limit(limit + 1)
    if position is not None:
        wanted = wanted.where(_behind(by, position, order))
    return wanted.order_by(*_order(by, order))


def _order(
    column: ColumnElement[Any], order: Sort, number: ColumnElement[int] = job_rows.c.id
) -> list[ColumnElement[Any]]:
    columns = [column] if order.field == "id" else [column, number]
    return [each.desc() if order.descending else each for each in columns]


def _behind(column: ColumnElement[Any], position: Position, sort: Sort) -> ColumnElement[bool]:
    if sort.field == "id":
        return column < position.id if sort.descending else column > position.id
    row = tuple_(column, job_rows.c.id)
    last = (position.key, position.id)
    return row < last if sort.descending else row > last


# ------------------------------------------------------------------------------------------------ rows


def encode_job(job: Job) -> Row:
    return (
        row_codec.required_job_number(job.id),
        job.name,
        job.user,
        job.kind.value,
        job.state.value,
        job.queue,
        job.priority,
        job.created_at,
        job.queued_at,
        job.pinned_at,
        job.started_at,
        job.ended_at,
        job.attempt,
        job.version,
        encode_body(job),
    )


def _search_text(spec: JobSpec) -> str | None:
    """The text that a search finds the job by, beside its name and its user."""
    return "\n".join(filter(None, (getattr(spec, name) for name in _SEARCHED))) or None


def decode_job(row: Any) -> Job:
    kind = _KINDS[row[3]]
    return Job(
        id=row_codec.job_id(row[0]),
        name=row[1],
        user=row[2],
        kind=kind,
        state=_STATES[row[4]],
        queue=row[5],
        priority=row[6],
        created_at=row[7],
        queued_at=row[8],
        pinned_at=row[9],
        started_at=row[10],
        ended_at=row[11],
        attempt=row[12],
        version=row[13],
        **decode_body(row[14], kind),
    )


def _record_of(row: Any) -> JobRecord:
    return JobRecord(job=decode_job(row), spec=row_codec.decode_spec(row[15]))
