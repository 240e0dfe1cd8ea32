"""The servers over one PostgreSQL, and the lease of the leader.

On connections of its own, each statement a transaction: the lease must be renewed while a long turn holds the writers'
lock. Only `acquire` takes that lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from corral.control.ports import LeaseRecord, ServerRecord
from corral.stores.database.errors import StoreUnreachable
from corral.stores.database.statements import count_up
from corral.stores.database.store_holder import CHANNEL, LEASE

_NOW = "extract(epoch FROM clock_timestamp())"
_ANNOUNCE = text(f"""
    INSERT INTO servers (name, url, host, pid, version, session, key, may_lead, detail, place, started_at, seen_at)
    VALUES (:name, :url, :host, :pid, :version, :session, :key, :may_lead, :detail, :place, {_NOW}, {_NOW})
    ON CONFLICT (name) DO UPDATE SET url = excluded.url, host = excluded.host, pid = excluded.pid,
    version = excluded.version, session = excluded.session, key = excluded.key, may_lead = excluded.may_lead,
    detail = excluded.detail, place = excluded.place, started_at = excluded.started_at, seen_at = excluded.seen_at
""")
_SEEN = text(f"UPDATE servers SET place = :place, seen_at = {_NOW} WHERE name = :name")
_LEAVE = text("DELETE FROM servers WHERE name = :name AND session = :session")
_ALL = text(f"""
    SELECT name, url, host, pid, version, session, key, may_lead, detail, place, started_at,
    {_NOW} - seen_at AS unseen_seconds FROM servers ORDER BY name
""")
_LEASE = """
    SELECT server, token, renewals, since, changes,
    EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = leases.backend) AS has_session
    FROM leases WHERE name = :lease
"""
_READ = text(_LEASE)
_LOCK = text(f"{_LEASE} FOR UPDATE OF leases")
_FIRST = text(
    "INSERT INTO leases (name, server, token, renewals, session, backend, since, changes) "
    "VALUES (:lease, '', '', 0, '', 0, 0, 0) ON CONFLICT (name) DO NOTHING"
)
#: The epoch's row may be locked by a transaction of a leader that is frozen or was cut off.
_END_SESSIONS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity, leases WHERE leases.name = :lease "
    "AND leases.session <> '' AND application_name = leases.session AND pid <> pg_backend_pid()"
)
_TAKE = text(f"""
    UPDATE leases SET server = :server, token = :token, renewals = 0, session = :session, backend = pg_backend_pid(),
    since = {_NOW}, changes = changes + 1 WHERE name = :lease
""")
_RENEW = text(
    "UPDATE leases SET renewals = renewals + 1, backend = pg_backend_pid() WHERE name = :lease AND token = :token"
)
_RELEASE = text("UPDATE leases SET server = '', token = '', session = '' WHERE name = :lease AND token = :token")
_EPOCH = text("SELECT value FROM counters WHERE name = 'epoch' FOR UPDATE")


class PostgresServers:
    """Implements `corral.control.ports.ServerRegistry`."""

    def __init__(self, engine: Engine) -> None:
        """`engine` commits every statement."""
        self._engine = engine
        self._listening = threading.Lock()
        self._listener: Any = None

    def announce(self, server: ServerRecord) -> None:
        with self._connected() as connection:
            connection.execute(
                _ANNOUNCE,
                {
                    "name": server.name,
                    "url": server.url,
                    "host": server.host,
                    "pid": server.pid,
                    "version": server.version,
                    "session": server.session,
                    "key": server.key,
                    "may_lead": server.may_lead,
                    "detail": server.detail,
                    "place": server.place,
                },
            )
            connection.execute(_FIRST, {"lease": LEASE})

    def seen(self, name: str, place: int) -> bool:
        with self._connected() as connection:
            return connection.execute(_SEEN, {"name": name, "place": place}).rowcount == 1

    def leave(self, name: str, session: str) -> None:
        with self._connected() as connection:
            connection.execute(_LEAVE, {"name": name, "session": session})

    def all(self) -> list[ServerRecord]:
        with self._connected() as connection:
            return [ServerRecord(**row) for row in connection.execute(_ALL).mappings()]

    def lease(self) -> LeaseRecord:
        with self._connected() as connection:
            return _lease_of(connection.execute(_READ, {"lease": LEASE}))

    def acquire(self, observed: LeaseRecord, server: ServerRecord, token: str) -> bool:
        with self._connected() as plain:
            connection = plain.execution_options(isolation_level="READ COMMITTED")
            with connection.begin():
                present = _lease_of(connection.execute(_LOCK, {"lease": LEASE}))
                if (present.token, present.renewals) != (observed.token, observed.renewals):
                    return False
                connection.execute(_END_SESSIONS, {"lease": LEASE})
                connection.execute(_EPOCH)
                count_up(connection, "epoch", 1)
                connection.execute(
                    _TAKE, {"lease": LEASE, "server": server.name, "token": token, "session": server.session}
                )
        return True

    def renew(self, token: str) -> bool:
        with self._connected() as connection:
            return connection.execute(_RENEW, {"lease": LEASE, "token": token}).rowcount == 1

    def release(self, token: str) -> None:
        with self._connected() as connection:
            connection.execute(_RELEASE, {"lease": LEASE, "token": token})

    def wait_for_commit(self, timeout_seconds: float) -> None:
        with self._listening:
            try:
                if self._listener is None:
                    self._listener = self._listened()
                for _ in self._listener.notifies(timeout=timeout_seconds, stop_after=1):
                    pass
            except (psycopg.Error, SQLAlchemyError) as error:
                self._end_listening()
                raise StoreUnreachable(f"commits cannot be followed: {error}") from error

    def close(self) -> None:
        with self._listening:
            self._end_listening()
        self._engine.dispose()

    def _listened(self) -> Any:
        pooled = self._engine.raw_connection()
        connection = pooled.driver_connection
        assert connection is not None
        pooled.detach()
        connection.autocommit = True
        connection.execute(f"LISTEN {CHANNEL}")
        return connection

    def _end_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            # Also if no connection becomes free in time.
            reason = error.orig if isinstance(error, DBAPIError) else error
            raise StoreUnreachable(f"the servers of this store cannot be read: {reason}") from error


def _lease_of(rows: Any) -> LeaseRecord:
    row = rows.mappings().first()
    return LeaseRecord() if row is None else LeaseRecord(**row)
