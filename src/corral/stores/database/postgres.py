"""PostgreSQL by URL.

Writers take turns by locking the epoch's row, so that ids are committed in their order. Readers
get a repeatable, read-only view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event

from corral.control.ports import StoreConflict
from corral.stores.database.commit_guard import count_changes
from corral.stores.database.database import (
    EXTRA_READERS,
    POOL_TIMEOUT_SECONDS,
    READERS,
    Database,
    explain_errors,
    read_epoch,
)
from corral.stores.database.errors import ReadOnlyTransaction, StoreRefused, StoreUnreachable
from corral.stores.system.servers import PostgresServers

CONNECT_TIMEOUT_SECONDS = 10
#: How long a writer waits for another server's turn to end.
LOCK_TIMEOUT_SECONDS = 30
#: A connection without an acknowledgement for so long is dead: the other machine is down.
UNANSWERED_SECONDS = 20
#: A server that froze inside a transaction loses it, so that another one can take over. Shorter than the lock timeout:
#: the other server gets the lock at its first try.
IDLE_IN_TRANSACTION_SECONDS = 20

#: Messages of a server that refuses the login: clients get no error code at this point. Messages in other languages are
#: not recognised, and corral waits.
_REFUSALS = ("authentication failed", "no pg_hba.conf entry", "does not exist", "no password supplied")

_SECRET_PARAMETERS = ("password", "sslpassword")


def open_postgres(url: URL) -> Database:
    # Secrets are removed from the URL: an engine shows its URL in its repr, and masks only one kind of password there.
    secrets = {name: str(url.query[name]) for name in _SECRET_PARAMETERS if name in url.query}
    url = url.set(drivername="postgresql+psycopg").difference_update_query(list(secrets))
    if url.password is not None:
        secrets["password"] = url.password
    writer = _engine(url, secrets, isolation="READ COMMITTED", read_only=False, connections=1, extra=0)
    reader = _engine(
        url, secrets, isolation="REPEATABLE READ", read_only=True, connections=READERS, extra=EXTRA_READERS
    )
    return Database(
        kind="postgresql",
        place=_place(url),
        writer=writer,
        reader=reader,
        lock_epoch=lambda connection: read_epoch(connection, for_update=True),
        server_version=_version,
        open_registry=lambda: PostgresServers(
            _engine(url, secrets, isolation="AUTOCOMMIT", read_only=False, connections=2, extra=2)
        ),
    )


def _engine(
    url: URL, secrets: Mapping[str, str], *, isolation: Any, read_only: bool, connections: int, extra: int
) -> Engine:
    engine = create_engine(
        url,
        connect_args={**_connect_arguments(url), **secrets},
        isolation_level=isolation,
        pool_size=connections,
        max_overflow=extra,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        # The database may have been restarted since a connection was last used.
        pool_pre_ping=True,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.read_only = read_only

    count_changes(engine)
    explain_errors(engine, lambda context: _explain(context, _place(url), list(secrets.values()), read_only))
    return engine


def _connect_arguments(url: URL) -> dict[str, Any]:
    """Settings of every connection; options in the URL have precedence."""
    options = (
        f"-c lock_timeout={LOCK_TIMEOUT_SECONDS}s -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_SECONDS}s"
    )
    ours: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "application_name": "corral",
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": UNANSWERED_SECONDS * 1000,
    }
    arguments = {name: value for name, value in ours.items() if name not in url.query}
    arguments["options"] = f"{options} {url.query.get('options', '')}".strip()
    return arguments


def _explain(context: ExceptionContext, place: str, secrets: Sequence[str], read_only: bool) -> Exception | None:
    error = context.original_exception
    if isinstance(error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure):
        return StoreConflict("another change came between")
    if isinstance(error, psycopg.IntegrityError):
        return StoreConflict("a row that this change builds on was added or removed meanwhile")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction) and read_only:
        return ReadOnlyTransaction("a read transaction cannot write")
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return StoreUnreachable(f"{place} stays locked by another server")
    # A read-only writer is connected to a standby: a failover of the database is in progress.
    passing = psycopg.OperationalError | psycopg.InterfaceError | psycopg.errors.ReadOnlySqlTransaction
    if context.is_disconnect or isinstance(error, passing):
        text = _masked(str(error).strip(), secrets)
        kind = StoreRefused if context.connection is None and any(sign in text for sign in _REFUSALS) else None
        return (kind or StoreUnreachable)(f"cannot use {place}: {text}")
    return None


def _place(url: URL) -> str:
    shown = url.set(drivername="postgresql").difference_update_query(["application_name"])
    return shown.render_as_string(hide_password=True)


def _masked(message: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        message = message.replace(secret, "***")
    return message


def _version(connection: Connection) -> str:
    version: str = connection.exec_driver_sql("SHOW server_version").scalar_one()
    return version
