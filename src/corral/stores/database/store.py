"""The store: fencing, turns of writers, and transactions on either database."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InvalidRequestError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from corral.control.ports import Leadership, ServerRegistry, StoreHolder, StoreSuperseded, Transaction
from corral.stores.database import disk_reserve
from corral.stores.database.commit_guard import begin_work, changes_made, check_work
from corral.stores.database.database import Database
from corral.stores.database.errors import StoreClosed, StoreRefused, StoreUnreachable
from corral.stores.database.schema_upgrade import current_revision
from corral.stores.database.statements import count_up
from corral.stores.database.store_holder import (
    CHANNEL,
    check_holder,
    installation_of,
    keep_holder,
    known_installation,
    read_holder,
    token_of,
)
from corral.stores.database.transaction import SqlTransaction


class SqlStore:
    """Implements `corral.control.ports.Store` over SQLite or PostgreSQL.

    Fencing: a store on which `take_over` was called can write only until another server calls `take_over`. A store on
    which it was never called (a tool, a test) may always write; it takes turns with the others.
    A view of `read` is fixed by the first query in the block.
    """

    def __init__(self, database: Database, claim: StoreHolder | None = None, *, may_take_over: bool = False) -> None:
        """`claim` is the home of the server; a tool or a test has none, and skips the check."""
        self._database = database
        self._claim = claim
        self._may_take_over = may_take_over
        self._turn = threading.Lock()
        #: the thread that writes now, to refuse a nested `write` instead of a deadlock
        self._holder: int | None = None
        self._epoch: int | None = None
        #: the token of this server's lease, if it is one of several servers
        self._lease_token = ""
        self._closed = False

    def take_over(self, above: int = 0) -> Leadership:
        with self._writing() as connection:
            before = self._database.lock_epoch(connection)
            if self._lease_token and token_of(connection) != self._lease_token:
                raise StoreSuperseded("another server has the lease of this store")
            if self._claim is not None:
                # Checked again under the lock: two homes may have been started at the same time.
                check_holder(connection, self._claim, take_over=self._may_take_over)
                keep_holder(connection, self._claim)
            installation = installation_of(connection)
            epoch = count_up(connection, "epoch", max(before, above) + 1 - before)
        self._epoch = epoch
        return Leadership(term=epoch, installation=installation)

    def registry(self) -> ServerRegistry:
        """The servers over this database. Raises StoreRefused if only one can use it."""
        if self._database.open_registry is None:
            raise StoreRefused("several servers need a PostgreSQL: set storage.database")
        return self._database.open_registry()

    def lead_with(self, lease_token: str) -> None:
        """Sets the lease of a leading server: `take_over` needs the lease, and every commit wakes the other servers."""
        self._lease_token = lease_token

    def claim(self, claim: StoreHolder) -> None:
        """Store the home of the server, with details that were not known when the store was opened."""
        self._claim = claim

    def installation(self) -> str:
        """The installation's id; "" while no server has taken the store over."""
        self._check_open()
        with self._database.reader.connect() as connection:
            return known_installation(connection) or ""

    def holder(self) -> StoreHolder | None:
        """The home that owns the store; None if there is none."""
        self._check_open()
        with self._database.reader.connect() as connection:
            return read_holder(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._writing() as connection:
            epoch = self._database.lock_epoch(connection)
            if self._epoch is not None and self._epoch != epoch:
                raise StoreSuperseded("another server has taken over this store; this one must stop")
            yield SqlTransaction(connection)
            if self._lease_token and changes_made(connection):
                connection.exec_driver_sql(f"NOTIFY {CHANNEL}")

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        self._check_open()
        with _plain_errors(), self._database.reader.connect() as connection, connection.begin():
            begin_work(connection)
            yield SqlTransaction(connection)

    def describe(self) -> Mapping[str, str]:
        self._check_open()
        with _plain_errors(), self._database.reader.connect() as connection:
            version = self._database.server_version(connection)
            schema = current_revision(connection) or ""
        return {"kind": self._database.kind, "version": version, "place": self._database.place, "schema": schema}

    def keep_room(self) -> None:
        """Make sure that the store can write for a while when its disk is full. Quick if the reserve exists already."""
        if self._database.kind != "sqlite":
            return
        with self._database.reader.connect() as connection:
            missing = disk_reserve.missing_bytes(connection)
        if missing:
            with self._writing() as connection:
                disk_reserve.fill(connection, missing)
            with self._writing() as connection:
                disk_reserve.release(connection)
        disk_reserve.allocate_log(f"{self._database.place}-wal")

    def close(self) -> None:
        self._closed = True
        # An open transaction is finished first.
        with self._turn:
            self._database.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        me = threading.get_ident()
        if self._holder == me:
            raise RuntimeError("a write transaction is open in this thread already")
        with self._turn:
            self._check_open()
            self._holder = me
            try:
                with _plain_errors(), self._database.writer.connect() as connection, connection.begin():
                    begin_work(connection)
                    yield connection
                    check_work(connection)
            finally:
                self._holder = None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed")


@contextmanager
def _plain_errors() -> Iterator[None]:
    """SQLAlchemy's own errors of an unavailable store: no free connection, or a lost one. Errors of the driver are
    explained in the module of the database."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnreachable("the database is too slow: no connection becomes free") from error
    except (DBAPIError, InvalidRequestError) as error:
        if isinstance(error, PendingRollbackError) or getattr(error, "connection_invalidated", False):
            raise StoreUnreachable("the connection to the database was lost") from error
        raise
