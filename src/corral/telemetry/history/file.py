"""The history file: its tables, the version of its format, and connections to it.

One connection writes, guarded by a lock; readers have their own and see one consistent state each (write-ahead log).
Every commit is on the disk when it returns: there is one every few seconds, so the cost is negligible.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from corral.control.ports import HistoryUnavailable

#: "cHst" as a number: files of other programs are rejected.
APPLICATION_ID = 0x63487374
#: The statements that migrate each format to the next one; the first creates an empty file. Never change a released
#: one: add another.
FORMATS = (
    """
    CREATE TABLE metric (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, per_unit REAL NOT NULL);
    CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE layout (id INTEGER PRIMARY KEY, subjects BLOB NOT NULL);
    CREATE TABLE head (
        metric INTEGER NOT NULL, at INTEGER NOT NULL,
        layout INTEGER NOT NULL, width INTEGER NOT NULL, data BLOB NOT NULL
    );
    CREATE INDEX head_by_metric ON head (metric, at, layout);
    CREATE TABLE chunk (
        level INTEGER NOT NULL, metric INTEGER NOT NULL, block INTEGER NOT NULL, start INTEGER NOT NULL,
        data BLOB NOT NULL
    );
    CREATE UNIQUE INDEX chunk_by_place ON chunk (level, metric, block, start);
    CREATE TABLE level (id INTEGER PRIMARY KEY, floor INTEGER NOT NULL);
    INSERT INTO level VALUES (0, 0), (1, 0), (2, 0);
    """,
)
SYNCHRONOUS = "FULL"
_BUSY_SECONDS = 10.0
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_IDLE_READERS = 4


class HistoryTooNew(HistoryUnavailable):
    """A newer corral wrote the file. The file was not changed."""


class HistoryDamaged(HistoryUnavailable):
    """The file is no database, or a broken one. It was not changed."""


class HistoryFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._closed = False
        with self._explained():
            _create_privately(path)
            self._writer = self._connect()
            try:
                _prepare(self._writer, path)
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, atomic. One at a time."""
        with self._lock, self._explained():
            self._refuse_if_closed()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.rollback()
                raise
            self._writer.commit()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A consistent snapshot for reading."""
        with self._explained():
            connection = self._reader()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.rollback()
                self._give_back(connection)

    def size_bytes(self) -> int:
        sides = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(side.stat().st_size for side in sides if side.exists())

    def close(self) -> None:
        with self._lock, self._readers_lock:
            if self._closed:
                return
            self._closed = True
            for connection in (*self._readers, self._writer):
                connection.close()
            self._readers.clear()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        # Readings are not secret, so deleted pages need not be overwritten.
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    def _reader(self) -> sqlite3.Connection:
        with self._readers_lock:
            self._refuse_if_closed()
            if self._readers:
                return self._readers.pop()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._readers_lock:
            if not self._closed and len(self._readers) < _IDLE_READERS:
                self._readers.append(connection)
                return
        connection.close()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise HistoryUnavailable("the metric history is closed")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            # The low byte is the primary error code.
            is_damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
            kind = HistoryDamaged if is_damaged else HistoryUnavailable
            raise kind(f"cannot use the metric history {self.path}: {error}") from error
        except zstandard.ZstdError as error:
            raise HistoryUnavailable(f"the metric history {self.path} is damaged: {error}") from error


def set_aside(path: Path) -> Path:
    """Move a damaged file and what belongs to it out of the way; returns its new path. An earlier one is replaced."""
    aside = path.with_name(f"{path.name}.damaged")
    for suffix in ("-wal", "-shm", ""):
        side = path.with_name(path.name + suffix)
        if side.exists():
            os.replace(side, aside.with_name(aside.name + suffix))
    return aside


def _create_privately(path: Path) -> None:
    """SQLite gives its side files the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise HistoryUnavailable(f"{path} is a database, but not corral's metric history")
    if version > len(FORMATS):
        raise HistoryTooNew(
            f"{path} has format {version}, and this corral knows formats up to {len(FORMATS)}: "
            "use the corral that wrote it, or a newer one, or move the file away to begin a new history"
        )
    connection.execute("PRAGMA page_size = 4096")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA journal_size_limit = {64 << 20}")
    for number, statements in enumerate(FORMATS[version:], start=version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {statements}; PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {number}; COMMIT;"
        )
