"""Runs compiled SQL through the driver's own `executemany`.

Statements are built with SQLAlchemy and compiled once per database; a batch of rows then costs one call of the driver,
in place of one round of parameter processing per row. Also here: how the two databases spell an upsert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, Table, bindparam, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler

from corral.stores.schema.tables import counter_rows

Row = tuple[Any, ...]

#: Keys in one query; far below what both databases allow.
CHUNK = 500

#: Positional parameters on both sides, so that a row is a plain tuple.
_DIALECTS: dict[str, Dialect] = {
    "sqlite": SQLiteDialect_pysqlite(paramstyle="qmark"),
    "postgresql": PGDialect_psycopg(paramstyle="format"),  # type: ignore[no-untyped-call]
}


def execute_by_driver(connection: Connection, sql: str, parameters: Any = (), *, many: bool = False) -> Any:
    """Run a statement by a cursor of the driver, which the caller closes. SQLAlchemy's own way builds a context and a
    result for each statement, which takes four times as long as the statement itself. Listeners see the statement and
    its errors as they would there."""
    cursor = connection.connection.cursor()
    for note in connection.dispatch.before_cursor_execute:
        note(connection, cursor, sql, parameters, None, many)
    try:
        if many:
            cursor.executemany(sql, parameters)
        else:
            cursor.execute(sql, parameters)
    except Exception as error:  # noqa: BLE001 - raised again, as the error that the listeners make of it
        # Always raises.
        connection._handle_dbapi_exception(error, sql, parameters, cursor, None)
    return cursor


class _Compiled:
    """A statement that is compiled once per database; `names` are the parameters in the order of a row's values."""

    def __init__(self, build: Callable[[str], Executable], names: Sequence[str]) -> None:
        self._build = build
        self._names = list(names)
        self._compiled: dict[str, tuple[str, Callable[[Row], Row] | None]] = {}

    def _compiled_for(self, database: str) -> tuple[str, Callable[[Row], Row] | None]:
        known = self._compiled.get(database)
        if known is None:
            compiled = self._build(database).compile(  # type: ignore[attr-defined]
                dialect=_DIALECTS[database], column_keys=self._names
            )
            known = self._compiled[database] = (str(compiled), _arrangement(compiled, self._names))
        return known


class BatchStatement(_Compiled):
    """An INSERT, UPDATE or DELETE for many rows. Columns that are not bound in the statement itself are set."""

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """The number of rows that the whole batch changed."""
        if not rows:
            return 0
        sql, arrange = self._compiled_for(connection.dialect.name)
        arranged = list(rows) if arrange is None else [arrange(row) for row in rows]
        is_one = len(arranged) == 1
        parameters = arranged[0] if is_one else arranged
        with closing(execute_by_driver(connection, sql, parameters, many=not is_one)) as cursor:
            changed: int = cursor.rowcount
        return changed


class RowStatement(_Compiled):
    """A statement that returns one row, or none. Values are those of the driver: SQLite has integers for truth values,
    and no text is replaced."""

    def run(self, connection: Connection, *row: Any) -> Row | None:
        sql, arrange = self._compiled_for(connection.dialect.name)
        with closing(execute_by_driver(connection, sql, row if arrange is None else arrange(row))) as cursor:
            found: Row | None = cursor.fetchone()
        return found


class ValueStatement(RowStatement):
    """A statement that returns one value."""

    def run(self, connection: Connection, *row: Any) -> Any:
        (value,) = super().run(connection, *row) or ()
        return value


def _arrangement(compiled: SQLCompiler, names: list[str]) -> Callable[[Row], Row] | None:
    order = [names.index(name) for name in compiled.positiontup or ()]
    if order == list(range(len(names))):
        return None
    # itemgetter with a single index returns a bare value, but a row must be a tuple.
    return itemgetter(*order) if len(order) > 1 else lambda row: (row[order[0]],)


def insert_into(database: str, table: Table) -> Any:
    """An INSERT of that database, which knows ON CONFLICT."""
    return postgresql.insert(table) if database == "postgresql" else sqlite.insert(table)


def upsert(table: Table) -> BatchStatement:
    """Insert, or replace the row with the same primary key. A row has the table's columns in their order."""
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key]

    def build(database: str) -> Insert:
        statement = insert_into(database, table)
        changed = {name: statement.excluded[name] for name in names if name not in keys}
        result: Insert = statement.on_conflict_do_update(index_elements=keys, set_=changed)
        return result

    return BatchStatement(build, names)


def replace_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert, or replace by primary key, through SQLAlchemy's slower path: for small tables with arbitrary texts of
    users. Every row has every column."""
    if not rows:
        return
    statement = insert_into(connection.dialect.name, table)
    keys = [column.name for column in table.primary_key]
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), list(rows))


def _build_count_up(_: str) -> Executable:
    return (
        update(counter_rows)
        .where(counter_rows.c.name == bindparam("counter"))
        .values(value=counter_rows.c.value + bindparam("step"))
        .returning(counter_rows.c.value)
    )


_COUNT_UP = ValueStatement(_build_count_up, ["counter", "step"])


def count_up(connection: Connection, counter: str, step: int) -> int:
    """The counter's new value; it never decreases, so no number is used twice."""
    value: int = _COUNT_UP.run(connection, counter, step)
    return value
