"""Migrations from every schema, with rows in every table: no row is lost, and a failure leaves the store as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, Boolean, Connection, Double, Integer, LargeBinary, Table, func, select
from sqlalchemy.types import TypeEngine

from corral.stores import open_store
from corral.stores.copying.table_rows import Row, digest_of, key_positions, pages_of, tables_of
from corral.stores.database.database import Database
from corral.stores.database.opening import open_database
from corral.stores.database.schema_upgrade import NEWEST, current_revision, migrate
from corral.stores.schema.tables import metadata

pytest_plugins = ("tests.servers.fixtures",)

REVISIONS = sorted(
    path.name.split("_")[0]
    for path in (resources.files("corral.stores") / "migrations" / "versions").iterdir()
    if path.name[:4].isdigit()
)
#: Columns with JSON: what a row without special content has in them.
JSON: dict[str, str] = {
    "body": '{"request":{"nodes":1},"grace_seconds":30.0,"max_retries":3}',
    "spec": '{"command":["true"]}',
    "allocation": '{"model":"","grants":[]}',
    "message": '""',
}
LISTS = {"labels", "kinds", "groups", "functions", "models", "allow", "scopes", "shares", "gpu_ids"}
#: Columns whose values a migration or a table interprets.
TEXTS = {"kind": "training", "state": "completed", "role": "scientist", "health": "healthy", "user_name": "user"}


@contextmanager
def opened(url: str) -> Iterator[Database]:
    database = open_database(url)
    try:
        yield database
    finally:
        database.dispose()


def value_of(name: str, kind: TypeEngine[Any], *, nullable: bool) -> Any:
    if isinstance(kind, Boolean):
        return True
    if isinstance(kind, LargeBinary):
        return b"\x00\xff"
    if isinstance(kind, Double):
        return 1.5
    if isinstance(kind, BigInteger | Integer):
        return 1
    if name in LISTS:
        return "[]"
    if name in JSON:
        return JSON[name]
    if name in TEXTS:
        return TEXTS[name]
    return None if nullable else "{}" if name in ("detail", "result", "summary", "changes") else "name"


def fill(connection: Connection) -> None:
    """One row in every table that has none. Tables refer only to tables before them."""
    present: dict[str, dict[str, Any]] = {}
    for table in tables_of(connection):
        found = connection.execute(select(table).limit(1)).mappings().one_or_none()
        if found is None:
            row = {}
            for column in table.columns:
                if column.foreign_keys:
                    (reference,) = column.foreign_keys
                    row[column.name] = present[reference.column.table.name][reference.column.name]
                else:
                    row[column.name] = value_of(column.name, column.type, nullable=bool(column.nullable))
            connection.execute(table.insert(), row)
            present[str(table.name)] = row
        else:
            present[str(table.name)] = dict(found)


def keys(connection: Connection) -> dict[str, set[Row]]:
    """The primary keys of all rows, by table."""
    return {
        str(table.name): {
            tuple(row[i] for i in key_positions(table)) for page in pages_of(connection, table) for row in page
        }
        for table in tables_of(connection)
    }


def digests(connection: Connection) -> dict[str, str]:
    return {str(table.name): digest_of(connection, table).hex for table in tables_of(connection)}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_schema_is_migrated_with_its_rows(empty_database_url: str, revision: str) -> None:
    with opened(empty_database_url) as database:
        with database.writer.connect() as connection, connection.begin():
            migrate(connection, database.place, revision)
            fill(connection)
        with database.reader.connect() as connection:
            assert current_revision(connection) == revision
            before = keys(connection)
            counts = [connection.execute(select(func.count()).select_from(table)) for table in tables_of(connection)]
            assert all(count.scalar_one() > 0 for count in counts)
    open_store(empty_database_url).close()
    with opened(empty_database_url) as database, database.reader.connect() as connection:
        assert current_revision(connection) == NEWEST
        after = keys(connection)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert {name: found - after.get(name, set()) for name, found in before.items()} == {name: set() for name in before}


@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[len(REVISIONS) // 2], REVISIONS[-2]])
def test_a_migration_that_fails_leaves_the_store_as_it_was(
    empty_database_url: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All migrations run; the last statement of the last one fails."""
    with opened(empty_database_url) as database:
        with database.writer.connect() as connection, connection.begin():
            migrate(connection, database.place, revision)
            fill(connection)
        with database.reader.connect() as connection:
            before = digests(connection)
    (last,) = [
        path.name.removesuffix(".py")
        for path in (resources.files("corral.stores") / "migrations" / "versions").iterdir()
        if path.name.startswith(NEWEST)
    ]
    module = import_module(f"corral.stores.migrations.versions.{last}")
    with monkeypatch.context() as patch:
        operation, subject = re.findall(r"""op\.(\w+)\(\s*"(\w+)\"""", Path(str(module.__file__)).read_text("utf-8"))[
            -1
        ]
        patch.setattr(f"alembic.op.{operation}", _failing_at(subject, getattr(op, operation)))
        assert module.revision == NEWEST
        with pytest.raises(RuntimeError, match="the disk is full"):
            open_store(empty_database_url)
    with opened(empty_database_url) as database, database.reader.connect() as connection:
        assert current_revision(connection) == revision
        assert digests(connection) == before
    open_store(empty_database_url).close()


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("the disk is full")


def _failing_at(subject: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """The same operation, which fails for the table or the index of this name."""
    return lambda name, *args, **others: _fail() if name == subject else real(name, *args, **others)


def test_tables_of_a_failed_first_start_are_gone(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("alembic.op.create_index", _fail)
        with pytest.raises(RuntimeError):
            open_store(empty_database_url)
    with opened(empty_database_url) as database, database.reader.connect() as connection:
        found: list[Table] = tables_of(connection)
        assert found == []
    open_store(empty_database_url).close()
