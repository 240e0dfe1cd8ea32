"""Schema changes in two steps: what a new corral does to a store must leave the servers of the version before working.

While servers are upgraded one after the other, the first new one changes the schema and the old ones go on. So a
revision expands: it adds tables, and columns that old statements need not know. What no version in use needs any more
is removed by a later release, in a revision that is listed in `CONTRACTS` with the release that stopped using it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from corral.stores import migrations
from corral.stores.database.opening import open_database
from corral.stores.database.schema_upgrade import NEWEST, migrate
from tests.servers.stores import StorePlace

pytest_plugins = ("tests.servers.fixtures",)

#: The schema of the release before the first one with several servers.
FIRST = "0013"
#: Revisions that remove something, and the release since which it is not used.
CONTRACTS: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    kind: str
    is_required: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    columns: dict[tuple[str, str], Column]
    #: for each table, the sets of columns that must differ between rows
    unique: set[tuple[str, tuple[str, ...]]]
    references: set[tuple[str, tuple[str, ...], str]]


def shape_of(connection: Connection) -> Shape:
    seen = inspect(connection)
    columns: dict[tuple[str, str], Column] = {}
    unique: set[tuple[str, tuple[str, ...]]] = set()
    references: set[tuple[str, tuple[str, ...], str]] = set()
    for table in seen.get_table_names():
        for column in seen.get_columns(table):
            is_required = not column["nullable"] and column.get("default") is None and not column.get("autoincrement")
            columns[table, column["name"]] = Column(kind=str(column["type"]), is_required=bool(is_required))
        found: list[Any] = [*seen.get_unique_constraints(table), *(i for i in seen.get_indexes(table) if i["unique"])]
        unique |= {(table, tuple(sorted(filter(None, one["column_names"])))) for one in found}
        references |= {
            (table, tuple(one["constrained_columns"]), one["referred_table"]) for one in seen.get_foreign_keys(table)
        }
    return Shape(columns=columns, unique=unique, references=references)


def breaks(before: Shape, after: Shape) -> list[str]:
    """The changes that a server of the previous schema does not support."""
    tables = {table for table, _ in before.columns}
    gone = [f"{table}.{name} is gone" for table, name in before.columns if (table, name) not in after.columns]
    changed = [
        f"{table}.{name} is {after.columns[table, name].kind}, was {column.kind}"
        for (table, name), column in before.columns.items()
        if (table, name) in after.columns and after.columns[table, name].kind != column.kind
    ]
    needed = [
        f"{table}.{name} must be given, and an older server does not"
        for (table, name), column in after.columns.items()
        if table in tables and column.is_required
        if (table, name) not in before.columns or not before.columns[table, name].is_required
    ]
    rules = after.unique - before.unique
    rules |= {(table, names) for table, names, _ in after.references - before.references}
    stricter = [f"{table}{names} is restricted, and was not" for table, names in sorted(rules) if table in tables]
    return [*gone, *changed, *needed, *stricter]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    place = StorePlace(url=f"sqlite:///{tmp_path / 'corral.db'}")
    database = open_database(place.url)
    with database.writer.connect() as opened, opened.begin():
        yield opened
    database.dispose()


def revisions() -> list[str]:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    scripts = ScriptDirectory.from_config(config)
    return [script.revision for script in reversed(list(scripts.walk_revisions(FIRST, NEWEST)))]


def test_every_revision_leaves_the_version_before_working(connection: Connection) -> None:
    first, *later = revisions()
    assert first == FIRST
    assert later, "there is at least one revision since"
    migrate(connection, "the store", first)
    before = shape_of(connection)
    for revision in later:
        migrate(connection, "the store", revision)
        after = shape_of(connection)
        if revision not in CONTRACTS:
            assert breaks(before, after) == [], f"revision {revision} is no expansion"
        before = after


def test_schema_changes_that_an_older_server_cannot_use_are_found(connection: Connection) -> None:
    migrate(connection, "the store", NEWEST)
    before = shape_of(connection)
    connection.exec_driver_sql("ALTER TABLE users ADD COLUMN shoe_size INTEGER")
    assert breaks(before, shape_of(connection)) == []
    connection.exec_driver_sql("ALTER TABLE users RENAME COLUMN shoe_size TO hat_size")
    connection.exec_driver_sql("ALTER TABLE flavors DROP COLUMN default_gpus")
    connection.exec_driver_sql("CREATE UNIQUE INDEX only_one ON users (hat_size)")
    assert breaks(before, shape_of(connection)) == [
        "flavors.default_gpus is gone",
        "users('hat_size',) is restricted, and was not",
    ]
