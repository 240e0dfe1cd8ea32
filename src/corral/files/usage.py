"""The disk space that a directory uses.

Counts blocks and not lengths, so that a sparse file counts for its real size; a file with several hard links counts
once; links are not followed, even if a job replaces a directory by a link meanwhile. The supervisor imports this
module, so it uses the standard library only.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from corral.files.descriptors import DIRECTORY, open_below

_BLOCK_BYTES = 512
#: After this many files the measurement pauses, so that other processes can use the disk.
_POLITE_FILES = 2000
_POLITE_SECONDS = 0.01
#: Each level is held open, since a path may be longer than the kernel accepts.
MAX_DEPTH = 256


class TooDeep(OSError):
    """More nested directories than are measured: deeper files are not counted."""


@dataclass(frozen=True)
class DiskUse:
    bytes: int
    #: including directories
    files: int


def used_bytes(path: str | os.PathLike[str]) -> int:
    """Files that vanish meanwhile are not counted. Raises OSError if the directory itself cannot be read."""
    steps = measure_steps([path], must_exist=True)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            use: DiskUse = end.value
            return use.bytes
        time.sleep(_POLITE_SECONDS)


def measure_steps(
    paths: Iterable[str | os.PathLike[str]], *, must_exist: bool = False
) -> Generator[None, None, DiskUse]:
    """The disk space of these directories together. Yields after some thousand files. Raises TooDeep, and with
    `must_exist` OSError if one of them cannot be read."""
    counted = _Counted()
    for path in paths:
        try:
            descriptor = os.open(path, DIRECTORY)
        except OSError:
            if must_exist:
                raise
            continue
        yield from counted.walk(descriptor)
    return DiskUse(bytes=counted.bytes, files=counted.files)


class _Counted:
    def __init__(self) -> None:
        self.bytes = 0
        self.files = 0
        self._seen: set[tuple[int, int]] = set()

    def walk(self, root: int) -> Generator[None, None, None]:
        """Takes the descriptor over."""
        levels = [(root, self._directories(root))]
        try:
            while levels:
                parent, names = levels[-1]
                if not names:
                    os.close(levels.pop()[0])
                    continue
                try:
                    # A job may have replaced it since it was listed, or removed all permissions.
                    inner = open_below(parent, (names.pop(),))
                except OSError:
                    continue
                levels.append((inner, []))
                if len(levels) > MAX_DEPTH:
                    raise TooDeep(f"it has more than {MAX_DEPTH} directories in each other")
                before = self.files // _POLITE_FILES
                levels[-1] = (inner, self._directories(inner))
                if self.files // _POLITE_FILES > before:
                    yield
        finally:
            for descriptor, _ in levels:
                os.close(descriptor)

    def _directories(self, descriptor: int) -> list[str]:
        """Count what is in a directory; the names of the directories in it."""
        found = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    about = os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)
                except OSError:
                    continue  # gone since
                if stat.S_ISDIR(about.st_mode):
                    found.append(entry.name)
                elif about.st_nlink > 1:
                    if (about.st_dev, about.st_ino) in self._seen:
                        continue
                    self._seen.add((about.st_dev, about.st_ino))
                self.bytes += about.st_blocks * _BLOCK_BYTES
                self.files += 1
        return found
