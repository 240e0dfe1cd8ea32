"""Locks for launches: two threads never launch the same attempt at the same time."""

from __future__ import annotations

import threading
import zlib

_LOCKS = 64


class LaunchLocks:
    """A fixed number of locks, chosen by the attempt's id: they need no clean-up when an attempt is over."""

    def __init__(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def of(self, attempt_id: str) -> threading.Lock:
        return self._locks[zlib.crc32(attempt_id.encode()) % _LOCKS]
