"""Fetches all files of a bucket onto the node before a job starts: into the cache, and if nothing can be mounted also
as a directory. May take long, reports its progress, and continues where it was when it is repeated."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from corral.core.counts import counted
from corral.objects.bucket import WORKERS, Bucket, Entry

_GIB = 1 << 30
_COPY_BYTES = 1 << 20


class TooLarge(Exception):
    """The files do not fit; the message has the numbers."""


@dataclass(kw_only=True)
class Progress:
    """Counts bytes from several threads, and reports them as a text."""

    report: Callable[[str], None]
    total_bytes: int
    files: int
    done_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int) -> None:
        with self._lock:
            self.done_bytes += count
            percent = 100 * self.done_bytes // max(1, self.total_bytes)
            text = f"{self.done_bytes / _GIB:.2f} of {self.total_bytes / _GIB:.2f} GiB in {counted(self.files, 'file')}"
            self.report(f"fetching: {text} ({percent} %)")


def prefetch(bucket: Bucket, report: Callable[[str], None]) -> int:
    """Fetches every block of every file into the cache; returns the bytes. Raises NotReachable, Replaced, and TooLarge
    before anything is fetched."""
    found = list(bucket.files())
    total = sum(entry.size for _, entry in found)
    if total > bucket.cache.limit_bytes:
        raise TooLarge(
            f"{total / _GIB:.2f} GiB in {counted(len(found), 'file is', 'files are')} to be fetched before the start, "
            f"and the node's cache has room for {bucket.cache.limit_bytes / _GIB:.2f} GiB"
        )
    progress = Progress(report=report, total_bytes=total, files=len(found))
    block_bytes = bucket.cache.block_bytes
    blocks = [
        (path, entry, number)
        for path, entry in found
        for number in range(bucket.identity(path, entry).blocks(block_bytes))
    ]

    def keep(path: str, entry: Entry, number: int) -> None:
        bucket.keep(path, entry, number)
        progress.add(min(block_bytes, entry.size - number * block_bytes))

    _in_parallel([lambda block=block: keep(*block) for block in blocks])  # type: ignore[misc]
    return total


def fetch_tree(bucket: Bucket, target: str, report: Callable[[str], None]) -> int:
    """Writes the bucket's files into a directory of its own, read-only; returns the bytes. Copies: a job that can write
    to its files must not change the shared cache. Raises NotReachable, Replaced, OSError."""
    found = list(bucket.files())
    progress = Progress(report=report, total_bytes=sum(entry.size for _, entry in found), files=len(found))

    def put(path: str, entry: Entry) -> None:
        place = os.path.join(target, path)
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
        _put(bucket, path, entry, place)
        progress.add(entry.size)

    os.makedirs(target, mode=0o755, exist_ok=True)
    _in_parallel([lambda file=file: put(*file) for file in found])  # type: ignore[misc]
    return progress.total_bytes


def _put(bucket: Bucket, path: str, entry: Entry, place: str) -> None:
    """Written under another name first: a file in the tree is complete."""
    half = f"{place}.corral-{os.getpid()}"
    with open(half, "wb") as target:
        offset = 0
        while offset < entry.size:
            piece = bucket.read(path, entry, offset, _COPY_BYTES)
            target.write(piece)
            offset += len(piece)
    os.chmod(half, 0o444)
    if entry.modified_at:
        os.utime(half, (entry.modified_at, entry.modified_at))
    os.replace(half, place)


def _in_parallel(steps: list[Callable[[], None]]) -> None:
    """Waits for all of them, or raises the first error."""
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="fetching") as pool:
        futures = [pool.submit(step) for step in steps]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        failed = next((future for future in done if future.exception() is not None), None)
        if failed is not None:
            pool.shutdown(wait=False, cancel_futures=True)
            failed.result()
