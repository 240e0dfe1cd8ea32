"""One server per home directory, or several that know of each other."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class HomeLocked(Exception):
    """Another server uses this home directory."""

    def __init__(self, home: Path, pid: str) -> None:
        super().__init__(f"another corral server (process {pid or 'unknown'}) already uses {home}")
        self.pid = pid


class HomeLock:
    """Held until the process ends, in whatever way: the kernel releases it."""

    def __init__(self, home: Path, *, is_shared: bool = False) -> None:
        """Takes the lock. With `is_shared`, other servers that share the home may have it at the same time."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not inheritable: a job's supervisor outlives the server and must not hold its lock.
        self._file = os.open(home / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            pid = os.read(self._file, 32).decode("ascii", "replace").strip()
            os.close(self._file)
            raise HomeLocked(home, pid) from None
        # Overwritten before it is truncated: on a full disk, an empty file might not get its block back.
        written = os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        os.ftruncate(self._file, written)

    def release(self) -> None:
        os.close(self._file)


def holder_of(home: Path) -> str:
    """The process that uses a home on this machine; "" if there is none, or it cannot be seen."""
    try:
        file = os.open(home / "server.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(file, 32).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    return ""
