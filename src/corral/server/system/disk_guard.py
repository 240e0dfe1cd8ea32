"""The server's disk: its free space, what is refused when little is free, and a reserve for a full disk.

Jobs can fill the disk of the server's home. Before that, no job is launched and no upload begins any more. When the
disk is full, a file with reserved space is shortened step by step, so that records of ended jobs can be written; the
store has a reserve of its own (`stores/database/disk_reserve.py`).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.control.errors import OverLimit
from corral.control.live.worker import Worker
from corral.control.ports import EngineUnavailable, LaunchOrder
from corral.core.quantities import format_bytes
from corral.server.settings.disk_limits import DiskLimits

log = logging.getLogger("corral.server.disk")

RESERVE = "reserve"
LOOK_SECONDS = 1.0
#: How often the store's reserve is checked.
_ROOM_SECONDS = 600.0
#: With less free space the server's own records are in danger.
_DANGER_BYTES = 8 << 20
#: The reserve is freed in so many parts, because the process that fills the disk takes freed space, too.
_PARTS = 8
#: A launch makes some files; a disk can be full of those, too.
_MIN_FREE_FILES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Free:
    #: free for jobs, and free for the server, which may use blocks reserved for root
    bytes: int
    own_bytes: int
    #: None if the file system does not count files
    files: int | None


class DiskGuard:
    def __init__(self, *, home: Path, limits: DiskLimits, keep_room: Callable[[], None]) -> None:
        """`keep_room` makes sure that the store has its reserve."""
        self._home = home
        self._limits = limits
        self._keep_room = keep_room
        self._reserve = home / RESERVE
        self._was_low = False
        self._room_in = 0.0
        self._worker = Worker("disk-guard", self.look, every_seconds=LOOK_SECONDS)

    def start(self) -> None:
        self._look()
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def free(self, place: str | Path | None = None) -> Free:
        return _free(place or self._home)

    def problem(self) -> str:
        """Why no job is launched; "" if there is enough space."""
        free = self.free()
        if free.bytes < self._limits.min_free_bytes:
            least = format_bytes(self._limits.min_free_bytes)
            return f"the disk of the server has {format_bytes(free.bytes)} free, and {least} are kept free"
        if free.files is not None and free.files < _MIN_FREE_FILES:
            return f"the disk of the server has room for {free.files} more files"
        return ""

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: check that the disk has room. Raises EngineUnavailable: the launch is tried again."""
        if problem := self.problem():
            raise EngineUnavailable(problem)
        return order

    def check_room(self, size_bytes: int, place: str | Path | None = None) -> None:
        """Check the free space before so many bytes are written to a directory, by default the home. Raises
        OverLimit."""
        free = self.free(place)
        if free.bytes - size_bytes < self._limits.min_free_bytes:
            raise OverLimit(
                f"the disk has {format_bytes(free.bytes)} free, "
                f"{format_bytes(self._limits.min_free_bytes)} are kept free, and this needs {format_bytes(size_bytes)}",
                field="size",
                asked=size_bytes,
                free=free.bytes,
            )

    def look(self) -> None:
        """One round: free a part of the reserve, or create it again."""
        free = self.free()
        is_freed = free_reserve(self._home, self._limits, free)
        held = _size(self._reserve)
        has_room = free.bytes > self._limits.min_free_bytes + _DANGER_BYTES
        if not is_freed and held < self._limits.reserve_bytes and has_room:
            self._make_reserve()
        problem = self.problem()
        if problem and not self._was_low:
            log.error("nothing is launched: %s", problem)
        elif self._was_low and not problem:
            log.warning("the disk has room again")
        self._was_low = bool(problem)
        self._room_in -= LOOK_SECONDS
        if self._room_in <= 0 and not problem:
            self._room_in = _ROOM_SECONDS
            self._keep_room()

    def _make_reserve(self) -> None:
        descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # The file must own its blocks: not all file systems can allocate them at once.
            with contextlib.suppress(OSError):
                os.posix_fallocate(descriptor, 0, self._limits.reserve_bytes)
        finally:
            os.close(descriptor)

    def _look(self) -> None:
        try:
            self.look()
        except Exception:
            # The worker tries again: the server starts even if its disk cannot be read.
            log.exception("the disk could not be checked")


def free_reserve(home: Path, limits: DiskLimits, free: Free | None = None) -> bool:
    """Free a part of the reserve if the disk is full; whether it did. Also before the store is opened: that creates
    files. Without `free` the disk is measured."""
    reserve = home / RESERVE
    held = _size(reserve)
    if not held or (free or _free(home)).own_bytes >= _DANGER_BYTES:
        return False
    left = max(0, held - max(1, limits.reserve_bytes // _PARTS))
    os.truncate(reserve, left)
    log.error("the disk is full: %s of the reserve are left", format_bytes(left))
    return True


def _free(place: str | Path) -> Free:
    found = os.statvfs(place)
    is_root = os.geteuid() == 0
    return Free(
        bytes=found.f_bavail * found.f_frsize,
        own_bytes=(found.f_bfree if is_root else found.f_bavail) * found.f_frsize,
        files=found.f_favail if found.f_files else None,
    )


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
