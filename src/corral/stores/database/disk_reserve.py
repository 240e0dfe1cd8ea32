"""Disk space that an SQLite store reserves, so that it can still write when the disk is full.

Two files grow when a store is written to: the database, which uses its own free pages first, and the write-ahead log,
which is reused from its beginning. So free pages are kept in the database, and blocks are allocated for the log. A
PostgreSQL store is on a disk of its own.
"""

from __future__ import annotations

import ctypes
import errno
import os

from sqlalchemy import Connection

#: Enough for some thousand stops, sign-ins and events.
FREE_BYTES = 4 << 20
LOG_BYTES = 16 << 20
#: A flag of <linux/falloc.h>: blocks are allocated, and the file keeps its size.
_KEEP_SIZE = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)


def missing_bytes(connection: Connection) -> int:
    """Missing bytes of the reserve; 0 while at least half of it is free."""
    pages = int(connection.exec_driver_sql("PRAGMA freelist_count").scalar_one())
    free = pages * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    return 0 if free >= FREE_BYTES // 2 else FREE_BYTES - free


def fill(connection: Connection, size_bytes: int) -> None:
    """Allocate so many bytes of the disk."""
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS corral_room (zeros BLOB)")
    connection.exec_driver_sql("INSERT INTO corral_room VALUES (zeroblob(?))", (size_bytes,))


def release(connection: Connection) -> None:
    """Releases the reserve. Needs its own transaction: pages that are freed in the transaction that took them were
    never written.
    """
    connection.exec_driver_sql("DROP TABLE IF EXISTS corral_room")


def allocate_log(path: str) -> None:
    """Raises OSError if the disk is full. On file systems that cannot allocate blocks, nothing is reserved."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if _libc.fallocate(descriptor, _KEEP_SIZE, 0, LOG_BYTES) != 0:
            number = ctypes.get_errno()
            if number != errno.EOPNOTSUPP:
                raise OSError(number, os.strerror(number), path)
    finally:
        # Closing this file releases no lock of SQLite: its locks are on the other two files.
        os.close(descriptor)
