"""The rows of any table, in the order of its primary key, as values that are the same in SQLite and PostgreSQL.

Tables are read from the database itself and not from the schema of this corral, so that a store of an older corral can
be copied as it is.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, Table, select, tuple_

from corral.stores.copying.store_marks import MARKS

Row = tuple[Any, ...]

#: Tables of the database that hold nothing of the store: the revision, and the disk reserve of SQLite.
_NOT_COPIED = frozenset({"alembic_version", "corral_room"})
#: Rows that are read with one statement.
PAGE = 2000


def tables_of(connection: Connection) -> list[Table]:
    """A table comes after those that it refers to."""
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name not in _NOT_COPIED]


def pages_of(connection: Connection, table: Table) -> Iterator[list[Row]]:
    """Every row in the order of the primary key, without the marks of copies. Rows behind the last one that was
    returned may be changed meanwhile."""
    keys = list(table.primary_key.columns)
    at = key_positions(table)
    first = select(table).order_by(*keys).limit(PAGE)
    statement = first
    while True:
        page: list[Row] = [tuple(row) for row in connection.execute(statement)]
        if page:
            last = [page[-1][i] for i in at]
            # A comparison of tuples uses the index of a key with several columns.
            after = keys[0] > last[0] if len(keys) == 1 else tuple_(*keys) > tuple_(*last)
            statement = first.where(after)
        kept = [row for row in page if not (table.name == "meta" and row[at[0]] in MARKS)]
        if kept:
            yield kept
        if len(page) < PAGE:
            return


def key_positions(table: Table) -> list[int]:
    """The positions of the primary key in a row."""
    names = [column.name for column in table.columns]
    return [names.index(column.name) for column in table.primary_key.columns]


def encode_rows(rows: Iterable[Row]) -> bytes:
    """One line of ASCII JSON for each row."""
    return b"".join(_encoder.encode(row).encode("ascii") + b"\n" for row in rows)


def decode_rows(data: bytes) -> list[Row]:
    return [tuple(map(_decoded, json.loads(line))) for line in data.splitlines()]


class TableDigest:
    """The number of rows and a digest of their encoded form: equal for equal tables, whatever the database."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Sequence[Row], encoded: bytes | None = None) -> None:
        self.rows += len(rows)
        self._hash.update(encode_rows(rows) if encoded is None else encoded)

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()


def digest_of(connection: Connection, table: Table) -> TableDigest:
    digest = TableDigest()
    for page in pages_of(connection, table):
        digest.add(page)
    return digest


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"base64": b64encode(bytes(value)).decode("ascii")}
    raise TypeError(f"a value of type {type(value).__name__} cannot be copied")


def _decoded(value: Any) -> Any:
    return b64decode(value["base64"]) if isinstance(value, dict) else value


_encoder = json.JSONEncoder(separators=(",", ":"), default=_encoded)
