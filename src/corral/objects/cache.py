"""The cache of buckets on the node's disk: blocks of objects, up to a size, evicted least recently used first.

    <root>/blocks/ab/<identity>.<number>        one complete block
    <root>/blocks/ab/<identity>.<number>.part   a block that is being fetched, locked by the process that fetches it
    <root>/evicting                             locked by the process that evicts

An identity names one version of one object (bucket, key, the bucket's version of it, size), so a cached block is
never out of date. Any number of processes share the directory. A block is fetched once, whatever the number of readers,
appears by a rename, and is not removed while a process has it open. A process that dies while fetching leaves a `.part`
without a lock, which the next process starts again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

BLOCK_BYTES = 8 << 20
_PART = ".part"
#: Evicts a little more than needed, so that not every block causes an eviction.
_LOW_WATER = 0.9
#: A process checks the limit when it has fetched this part of it.
_LOOK_PART = 0.05
#: A block's time of use is stored with this precision.
_TOUCH_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """One version of one object."""

    bucket: str
    key: str
    #: the version in the bucket: an ETag or a generation
    version: str
    size: int
    #: distinguishes equal bucket names of different servers
    endpoint: str = ""

    @property
    def digest(self) -> str:
        name = "\0".join((self.endpoint, self.bucket, self.key, self.version, str(self.size)))
        return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()

    def blocks(self, block_bytes: int) -> int:
        return -(-self.size // block_bytes)


class BlockCache:
    """`fetch` returns the bytes of an object from a start to an end, and may raise any error."""

    def __init__(self, root: str, limit_bytes: int, *, block_bytes: int = BLOCK_BYTES) -> None:
        self._root = root
        self.limit_bytes = limit_bytes
        self.block_bytes = block_bytes
        self._blocks = os.path.join(root, "blocks")
        self._fetched_since = 0
        os.makedirs(self._blocks, mode=0o700, exist_ok=True)

    @contextmanager
    def opened(self, identity: Identity, number: int, fetch: Callable[[int, int], bytes]) -> Iterator[int]:
        """A descriptor of a complete block, fetched if it is not cached. It is not evicted while it is open."""
        descriptor = self.open_block(identity, number, fetch)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def open_block(self, identity: Identity, number: int, fetch: Callable[[int, int], bytes]) -> int:
        """Like `opened`, but the caller closes the descriptor."""
        path = self._path(identity, number)
        start = number * self.block_bytes
        length = min(self.block_bytes, identity.size - start)
        while True:
            descriptor = _open_whole(path, length)
            if descriptor is not None:
                return descriptor
            self._fetch(path, start, length, fetch)

    def has(self, identity: Identity, number: int) -> bool:
        length = min(self.block_bytes, identity.size - number * self.block_bytes)
        try:
            return os.stat(self._path(identity, number)).st_size == length
        except FileNotFoundError:
            return False

    # -------------------------------------------------------------------------------------------- fetching

    def _fetch(self, path: str, start: int, length: int, fetch: Callable[[int, int], bytes]) -> None:
        """Returns when the block is cached, by this process or by another."""
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        part = path + _PART
        with _locked(part) as descriptor:
            if os.path.exists(path) and os.stat(path).st_size == length:
                os.unlink(part)
                return
            data = fetch(start, start + length)
            if len(data) != length:
                raise OSError(f"{length} bytes were requested from {start} on, and {len(data)} were received")
            os.ftruncate(descriptor, 0)
            written = 0
            while written < length:
                written += os.pwrite(descriptor, data[written:], written)
            os.rename(part, path)
        self._fetched_since += length
        if self._fetched_since >= self.limit_bytes * _LOOK_PART:
            self._fetched_since = 0
            self.make_room()

    def _path(self, identity: Identity, number: int) -> str:
        digest = identity.digest
        return os.path.join(self._blocks, digest[:2], f"{digest}.{number}")

    # -------------------------------------------------------------------------------------------- making room

    def used_bytes(self) -> int:
        return sum(size for _, size, _ in self._listed())

    def make_room(self) -> int:
        """Remove the least recently used blocks until the rest is within the limit; returns the removed bytes. Does
        nothing if another process is evicting, and never removes open blocks."""
        lock = os.open(os.path.join(self._root, "evicting"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return 0
            found = sorted(self._listed())
            total = sum(size for _, size, _ in found)
            if total <= self.limit_bytes:
                return 0
            removed = 0
            for _, size, path in found:
                if total - removed <= self.limit_bytes * _LOW_WATER:
                    break
                if _remove_unless_open(path):
                    removed += size
            return removed
        finally:
            os.close(lock)

    def _listed(self) -> Iterator[tuple[float, int, str]]:
        """Time of use, size and path of each; including incomplete files of dead processes."""
        for shard in os.listdir(self._blocks):
            try:
                entries = list(os.scandir(os.path.join(self._blocks, shard)))
            except FileNotFoundError:
                continue
            for entry in entries:
                try:
                    found = entry.stat()
                except FileNotFoundError:
                    continue
                yield found.st_mtime, found.st_size, entry.path


def _open_whole(path: str, length: int) -> int | None:
    """Opened, locked against eviction and marked as used; None if it is missing or incomplete."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        found = os.fstat(descriptor)
        if found.st_nlink == 0:
            os.close(descriptor)  # evicted between the two lines above
            return None
        if found.st_size != length:
            # Damaged by a loss of power.
            os.unlink(path)
            os.close(descriptor)
            return None
        if time.time() - found.st_mtime > _TOUCH_SECONDS:
            os.utime(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(path: str) -> Iterator[int]:
    """The file, locked by this process only. Another process may have renamed or removed it while we waited: then it is
    repeated."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            is_it = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except FileNotFoundError:
            is_it = False
        if is_it:
            break
        os.close(descriptor)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_unless_open(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(descriptor)
    return True
