"""The store: who may write, when, and what a transaction is on either database."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection

from corral.control.ports import StoreSuperseded, Transaction
from corral.stores import room
from corral.stores.database import Database
from corral.stores.errors import StoreClosed
from corral.stores.migrating import current_revision
from corral.stores.statements import count_up
from corral.stores.transaction import SqlTransaction
from corral.stores.work import begin_work, check_work


class SqlStore:
    """Implements `corral.control.ports.Store` over SQLite or PostgreSQL.

    Fencing: a store on which `take_over` was called writes only as long as nobody took over after it. A store
    on which it was never called (a tool, a test) may always write; it takes turns with the others.
    A view of `read` is fixed by the first query in the block.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = threading.Lock()
        #: the thread whose turn it is, to refuse a second `write` inside the first in place of waiting for ever
        self._holder: int | None = None
        self._epoch: int | None = None
        self._closed = False

    def take_over(self) -> None:
        with self._writing() as connection:
            self._database.lock_epoch(connection)
            epoch = count_up(connection, "epoch", 1)
        self._epoch = epoch

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._writing() as connection:
            epoch = self._database.lock_epoch(connection)
            if self._epoch is not None and self._epoch != epoch:
                raise StoreSuperseded("another server has taken over this store; this one must stop")
            yield SqlTransaction(connection)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        self._check_open()
        with self._database.reader.connect() as connection, connection.begin():
            begin_work(connection)
            yield SqlTransaction(connection)

    def describe(self) -> Mapping[str, str]:
        self._check_open()
        with self._database.reader.connect() as connection:
            version = self._database.server_version(connection)
            schema = current_revision(connection) or ""
        return {"kind": self._database.kind, "version": version, "place": self._database.place, "schema": schema}

    def keep_room(self) -> None:
        """See that the store can write for a while when its disk is full. Quick when there is room already."""
        if self._database.kind != "sqlite":
            return
        with self._database.reader.connect() as connection:
            missing = room.missing_bytes(connection)
        if missing:
            with self._writing() as connection:
                room.fill(connection, missing)
            with self._writing() as connection:
                room.release(connection)
        room.allocate_log(f"{self._database.place}-wal")

    def close(self) -> None:
        self._closed = True
        # A transaction under way is finished first.
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
                with self._database.writer.connect() as connection, connection.begin():
                    begin_work(connection)
                    yield connection
                    check_work(connection)
            finally:
                self._holder = None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed")
