"""One consistent view of a whole store, for as long as a copy takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from corral.stores.database.database import Database


@contextmanager
def whole_view(database: Database) -> Iterator[Connection]:
    """Every query in the block sees the same state; writers are not delayed."""
    with database.reader.connect() as connection, connection.begin():
        keep_open(connection)
        yield connection


def keep_open(connection: Connection) -> None:
    """PostgreSQL must not end this transaction while the copy is busy elsewhere. A frozen process is no danger here: a
    copy is started by an operator, who waits for it."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
