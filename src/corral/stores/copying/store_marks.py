"""Marks of a store that a server must not use: a copy that is not complete, and a store that was moved elsewhere.

They are rows of `meta`, and are not part of a copy.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, inspect

from corral.stores.database.errors import StoreRefused
from corral.stores.people.scores import SqlMetaTable
from corral.stores.schema.tables import meta_rows

#: the command that makes the copy
UNFINISHED = "copy.unfinished"
#: the address of the store that took the place of this one, without a password
MOVED_TO = "copy.moved-to"

MARKS = frozenset({UNFINISHED, MOVED_TO})


def read_mark(connection: Connection, name: str) -> str | None:
    """Reads a mark; None if it is not set, or the database is empty."""
    if not inspect(connection).has_table(meta_rows.name):
        return None
    return SqlMetaTable(connection).get(name)


def set_mark(connection: Connection, name: str, value: str) -> None:
    SqlMetaTable(connection).put(name, value)


def remove_marks(connection: Connection) -> None:
    connection.execute(delete(meta_rows).where(meta_rows.c.key.in_(MARKS)))


def check_marks(connection: Connection) -> None:
    """Raises StoreRefused for a store that a server must not use."""
    if command := read_mark(connection, UNFINISHED):
        raise StoreRefused(f"it is an unfinished copy: run `{command}` again, or delete it")
    if place := read_mark(connection, MOVED_TO):
        raise StoreRefused(
            f"it was moved to {place}: set storage.database to that address (or move back with `corral store move`)"
        )
