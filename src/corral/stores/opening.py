"""From an address to a store that is ready: the right database, at the right schema."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from corral.stores.database import Database
from corral.stores.errors import BadStoreUrl
from corral.stores.migrating import bring_up_to_date
from corral.stores.sqlite import open_sqlite
from corral.stores.store import SqlStore


def _open_postgres(url: URL) -> Database:
    # The driver needs a client library and memory that an installation with SQLite need not have.
    from corral.stores.postgres import open_postgres

    return open_postgres(url)


_OPENERS = {
    "sqlite": open_sqlite,
    "postgresql": _open_postgres,
    "postgresql+psycopg": _open_postgres,
    "postgres": _open_postgres,
}


def open_store(url: str) -> SqlStore:
    """Open, and create or migrate where needed: "sqlite:///path/corral.db" or "postgresql://user:password@host/name".

    Raises BadStoreUrl, StoreUnreachable, or SchemaTooNew when a newer corral wrote it. No message holds a password.
    """
    parsed = _parsed(url)
    database = _OPENERS[parsed.drivername](parsed)
    try:
        bring_up_to_date(database)
    except BaseException:
        database.dispose()
        raise
    return SqlStore(database)


def _parsed(url: str) -> URL:
    # The address itself is never part of a message: it may hold a password.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadStoreUrl("not a database URL; it looks like sqlite:///path/corral.db or postgresql://…") from None
    if parsed.drivername not in _OPENERS:
        raise BadStoreUrl(f"unknown kind of store {parsed.drivername!r}; known: sqlite, postgresql")
    return parsed
