"""Opens a store by its address: creates or migrates the database."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from corral.control.ports import StoreHolder
from corral.stores.copying.store_marks import check_marks
from corral.stores.database.database import Database
from corral.stores.database.errors import BadStoreUrl, StoreRefused
from corral.stores.database.schema_upgrade import bring_up_to_date
from corral.stores.database.sqlite import open_sqlite
from corral.stores.database.store import SqlStore
from corral.stores.database.store_holder import check_holder


def _open_postgres(url: URL) -> Database:
    # Imported here: an installation with SQLite does not need the driver's client library and memory.
    try:
        from corral.stores.database.postgres import open_postgres
    except ModuleNotFoundError as error:
        raise StoreRefused(
            f"corral was installed without PostgreSQL: pip install 'corral[postgres]' ({error})"
        ) from error

    return open_postgres(url)


_OPENERS = {
    "sqlite": open_sqlite,
    "postgresql": _open_postgres,
    "postgresql+psycopg": _open_postgres,
    "postgres": _open_postgres,
}


def open_store(url: str, claim: StoreHolder | None = None, *, take_over: bool = False, session: str = "") -> SqlStore:
    """Open, and create or migrate where needed: "sqlite:///path/corral.db" or "postgresql://user:password@host/name".

    Raises BadStoreUrl, StoreUnreachable, or SchemaTooNew when a newer corral wrote it; and StoreHeld if another home
    than that of `claim` has it, unless this one is to take over. No message holds a password. `session` is the name of
    this server's sessions in the database, by which another server can end them.
    """
    database = open_database(url, session)
    try:
        # Before migration: the other home's server may be older, and running.
        with database.reader.connect() as connection:
            check_marks(connection)
            if claim is not None:
                check_holder(connection, claim, take_over=take_over)
        bring_up_to_date(database)
    except BaseException:
        database.dispose()
        raise
    return SqlStore(database, claim, may_take_over=take_over)


def open_database(url: str, session: str = "") -> Database:
    """The database as it is: nothing is created in it, migrated or checked. A missing SQLite file is created empty.
    `session` is the name of the sessions in PostgreSQL."""
    parsed = _parsed(url)
    if session:
        parsed = parsed.update_query_dict({"application_name": session})
    return _OPENERS[parsed.drivername](parsed)


def _parsed(url: str) -> URL:
    # The address itself is never part of a message: it may contain a password.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadStoreUrl(
            "this is not the URL of a database, such as sqlite:///path/corral.db or postgresql://…"
        ) from None
    if parsed.drivername not in _OPENERS:
        raise BadStoreUrl(f"unknown kind of store {parsed.drivername!r}; known: sqlite, postgresql")
    return parsed
