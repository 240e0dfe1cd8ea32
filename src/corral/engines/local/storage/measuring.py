"""How much is in a directory, counted as the disk sees it.

Blocks and not lengths, so that a sparse file counts for what it takes; a file with several names counts once; links are
not followed. Runs in the supervisor too, so only the standard library is imported here.
"""

from __future__ import annotations

import os
import time

_BLOCK_BYTES = 512
#: After so many files the disk is left to others for a moment.
_POLITE_FILES = 2000
_POLITE_SECONDS = 0.01


def used_bytes(path: str) -> int:
    """What vanishes while it is looked at does not count. Raises OSError if the directory itself cannot be read."""
    total, looked_at = 0, 0
    seen: set[tuple[int, int]] = set()
    waiting = [path]
    while waiting:
        directory = waiting.pop()
        try:
            entries = list(os.scandir(directory))
        except FileNotFoundError:
            if directory == path:
                raise
            continue
        except PermissionError:
            if directory == path:
                raise
            continue  # a job's own, closed to everybody: without root's rights nothing is known of it
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
                is_directory = entry.is_dir(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if is_directory:
                waiting.append(entry.path)
            elif found.st_nlink > 1:
                if (found.st_dev, found.st_ino) in seen:
                    continue
                seen.add((found.st_dev, found.st_ino))
            total += found.st_blocks * _BLOCK_BYTES
            looked_at += 1
            if looked_at % _POLITE_FILES == 0:
                time.sleep(_POLITE_SECONDS)
    return total
