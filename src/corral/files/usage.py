"""How much is in a directory that jobs write to, counted as the disk sees it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

from corral.files.opening import NotPlain, open_below, open_trusted

_BLOCK_BYTES = 512
#: After so many files the disk is left to others for a moment.
_POLITE_FILES = 2000
_POLITE_SECONDS = 0.01


def used_bytes(path: str | os.PathLike[str]) -> int:
    """Blocks and not lengths, so that a sparse file counts for what it takes; a file with several names counts once;
    links are not followed. What vanishes meanwhile does not count. No job may be able to replace the directory itself.
    Raises OSError if it cannot be read."""
    root = open_trusted(path)
    try:
        return _used(root)
    finally:
        os.close(root)


def _used(root: int) -> int:
    total = 0
    seen: set[tuple[int, int]] = set()
    for looked_at, found in enumerate(_entries(root), start=1):
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            if (found.st_dev, found.st_ino) in seen:
                continue
            seen.add((found.st_dev, found.st_ino))
        total += found.st_blocks * _BLOCK_BYTES
        if looked_at % _POLITE_FILES == 0:
            time.sleep(_POLITE_SECONDS)
    return total


def _entries(root: int) -> Iterator[os.stat_result]:
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        way = waiting.pop()
        try:
            directory = open_below(root, way)
        except (FileNotFoundError, NotADirectoryError, PermissionError, NotPlain):
            if not way:
                raise
            continue  # gone, replaced, or a job's own, closed to everybody
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append((*way, entry.name))
                    yield found
        finally:
            os.close(directory)
