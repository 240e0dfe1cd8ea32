"""From an address to a store that is ready: the right database, at the right schema."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from corral.control.ports import StoreHolder
from corral.stores.database.database import Database
from corral.stores.database.errors import BadStoreUrl
from corral.stores.database.schema_upgrade import bring_up_to_date
from corral.stores.database.sqlite import open_sqlite
from corral.stores.database.store import SqlStore
from corral.stores.database.store_holder import check_holder


def _open_postgres(url: URL) -> Database:
    # The driver needs a client library and memory that an installation with SQLite need not have.
    from corral.stores.database.postgres import open_postgres

    return open_postgres(url)


_OPENERS = {
    "sqlite": open_sqlite,
    "postgresql": _open_postgres,
    "postgresql+psycopg": _open_postgres,
    "postgres": _open_postgres,
}


def open_store(url: str, claim: StoreHolder | None = None, *, take_over: bool = False) -> SqlStore:
    """Open, and create or migrate where needed: "sqlite:///path/corral.db" or "postgresql://user:password@host/name".

    Raises BadStoreUrl, StoreUnreachable, or SchemaTooNew when a newer corral wrote it; and StoreHeld if another home
    than that of `claim` has it, unless this one is to take over. No message holds a password.
    """
    parsed = _parsed(url)
    database = _OPENERS[parsed.drivername](parsed)
    try:
        if claim is not None:
            # Before anything is migrated: the other home's server may be an older one, and alive.
            with database.reader.connect() as connection:
                check_holder(connection, claim, take_over=take_over)
        bring_up_to_date(database)
    except BaseException:
        database.dispose()
        raise
    return SqlStore(database, claim, may_take_over=take_over)


def _parsed(url: str) -> URL:
    # The address itself is never part of a message: it may hold a password.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadStoreUrl("not a database URL; it looks like sqlite:///path/corral.db or postgresql://…") from None
    if parsed.drivername not in _OPENERS:
        raise BadStoreUrl(f"unknown kind of store {parsed.drivername!r}; known: sqlite, postgresql")
    return parsed
