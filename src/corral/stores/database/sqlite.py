"""SQLite: one file in the server's home, nothing to install.

Write-ahead logging lets readers work beside the writer. The write connection syncs every commit to the disk, because an
accepted job must not be lost; readers have nothing to sync.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

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
from corral.stores.database.errors import BadStoreUrl, ReadOnlyTransaction, StoreRefused, StoreUnreachable
from corral.stores.database.statements import execute_by_driver

#: How long a writer waits for another process that has locked the file. Short: all other requests wait for the writer.
LOCK_TIMEOUT_SECONDS = 5

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
#: errors that only an operator can fix
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM}
_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE}
_WRITER_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", f"journal_size_limit = {64 << 20}")
_READER_PRAGMAS = ("query_only = ON",)


def open_sqlite(url: URL) -> Database:
    if not url.database or url.database == ":memory:":
        raise BadStoreUrl("a SQLite store needs a file: sqlite:///path/corral.db")
    if url.host or url.query:
        raise BadStoreUrl("a SQLite store is a file and nothing else: sqlite:///path/corral.db")
    path = Path(url.database).absolute()
    _create_privately(path)
    return Database(
        kind="sqlite",
        place=str(path),
        writer=_engine(path, begin="BEGIN IMMEDIATE", pragmas=_WRITER_PRAGMAS, connections=1, extra=0),
        reader=_engine(path, begin="BEGIN", pragmas=_READER_PRAGMAS, connections=READERS, extra=EXTRA_READERS),
        # BEGIN IMMEDIATE has taken the lock already.
        lock_epoch=lambda connection: read_epoch(connection, for_update=False),
        server_version=_version,
    )


def _create_privately(path: Path) -> None:
    """Creates the file for its owner only: it contains password hashes. SQLite gives its side files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        kind = StoreUnreachable if error.errno in _PASSING else StoreRefused
        raise kind(f"cannot open {path}: {error.strerror}") from error


def _engine(path: Path, *, begin: str, pragmas: tuple[str, ...], connections: int, extra: int) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        # isolation_level None: only this module begins transactions.
        connect_args={"isolation_level": None, "timeout": LOCK_TIMEOUT_SECONDS, "check_same_thread": False},
        pool_size=connections,
        max_overflow=extra,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        execute_by_driver(connection, begin).close()

    count_changes(engine)
    explain_errors(engine, lambda context: _explain(context, path))
    return engine


def _explain(context: ExceptionContext, path: Path) -> Exception | None:
    error = context.original_exception
    if not isinstance(error, sqlite3.Error):
        return None
    # The low byte is the primary error code.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return StoreConflict("a row that this change builds on was added or removed meanwhile")
    if code == sqlite3.SQLITE_READONLY and os.access(path, os.W_OK):
        return ReadOnlyTransaction("a read transaction cannot write")
    if code in _BUSY:
        return StoreUnreachable(f"{path} stays locked by another process")
    if code in _DAMAGED:
        return StoreRefused(f"cannot use {path}: {error}")
    if isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_ERROR:
        return None  # a wrong statement is a bug in corral, not a broken store
    if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError) and code:
        return StoreUnreachable(f"cannot use {path}: {error}")
    return None


def _version(_: Connection) -> str:
    return sqlite3.sqlite_version
