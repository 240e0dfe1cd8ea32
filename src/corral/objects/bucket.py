"""A bucket as a tree of files: its entries, the version of each file, and its bytes through the cache.

Listings are cached for a few seconds. The bytes of a file are those of the version at its opening: each block comes
with its version, so that a file that was replaced meanwhile gives an error and never a mixture.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from corral.objects.access import ObjectAccess, open_filesystem, reaching
from corral.objects.cache import BlockCache, Identity
from corral.objects.ranges import fetch_range

LISTING_SECONDS = 10.0
#: Blocks that are fetched concurrently, and ahead of a sequential reader.
WORKERS = 8
READ_AHEAD = 2


class Replaced(Exception):
    """The file was replaced while it was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One name in a directory of the bucket."""

    name: str
    is_directory: bool
    size: int = 0
    modified_at: float = 0.0
    version: str = ""


class Bucket:
    def __init__(self, access: ObjectAccess, cache: BlockCache) -> None:
        self.access = access
        self.cache = cache
        self.filesystem: Any = open_filesystem(access)
        self._lock = threading.Lock()
        self._listings: dict[str, tuple[float, dict[str, Entry]]] = {}
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="blocks")
        self._ahead: dict[tuple[str, int], Future[None]] = {}

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -------------------------------------------------------------------------------------------- what is there

    def key(self, path: str) -> str:
        """The object's full name, for a path below the prefix."""
        clean = path.strip("/")
        return f"{self.access.root}/{clean}" if clean else self.access.root

    def listing(self, path: str, *, fresh: bool = False) -> dict[str, Entry]:
        """A directory's entries by name; the root always exists. Raises FileNotFoundError or NotReachable."""
        clean = path.strip("/")
        with self._lock:
            known = self._listings.get(clean)
        if known is not None and not fresh and time.monotonic() - known[0] < LISTING_SECONDS:
            return known[1]
        with reaching(self.access):
            try:
                found = self.filesystem.ls(self.key(clean), detail=True)
            except FileNotFoundError:
                if clean:
                    raise
                found = []
        entries = {entry.name: entry for raw in found if (entry := self._entry(clean, raw)) is not None}
        with self._lock:
            self._listings[clean] = (time.monotonic(), entries)
        return entries

    def find(self, path: str) -> Entry:
        """One file or directory. Raises FileNotFoundError or NotReachable."""
        parent, _, name = path.strip("/").rpartition("/")
        if not name:
            return Entry(name="", is_directory=True)
        entry = self.listing(parent).get(name)
        if entry is None:
            raise FileNotFoundError(path)
        return entry

    def current(self, path: str) -> Entry:
        """The current state, queried from the bucket. Raises FileNotFoundError or NotReachable."""
        with reaching(self.access):
            raw = self.filesystem.info(self.key(path))
        return _file_entry(path.rpartition("/")[2], raw)

    def files(self) -> Iterator[tuple[str, Entry]]:
        """Every file below the prefix, with its path. Raises NotReachable."""
        with reaching(self.access):
            found = self.filesystem.find(self.access.root, detail=True)
        start = len(self.access.root) + 1
        for key, raw in sorted(found.items()):
            path = key[start:]
            # A name that no directory can have is skipped: it cannot be shown.
            if path and not path.endswith("/") and all(part not in ("", ".", "..") for part in path.split("/")):
                yield path, _file_entry(path.rpartition("/")[2], raw)

    def forget(self, path: str) -> None:
        """A file at this path was changed by this process."""
        clean = path.strip("/")
        with self._lock:
            while True:
                self._listings.pop(clean, None)
                if not clean:
                    return
                clean = clean.rpartition("/")[0]

    def _entry(self, directory: str, raw: dict[str, Any]) -> Entry | None:
        whole = str(raw["name"]).rstrip("/")
        name = whole.rpartition("/")[2]
        if whole == self.key(directory) or name in ("", ".", ".."):
            return None  # the directory's own marker
        if raw["type"] == "directory":
            return Entry(name=name, is_directory=True)
        return _file_entry(name, raw)

    # -------------------------------------------------------------------------------------------- bytes

    def identity(self, path: str, entry: Entry) -> Identity:
        access = self.access
        return Identity(
            bucket=access.bucket,
            key=self.key(path),
            version=entry.version,
            size=entry.size,
            endpoint=f"{access.kind}:{access.endpoint or ''}",
        )

    def read(self, path: str, entry: Entry, offset: int, length: int) -> bytes:
        """Bytes of the version that `entry` is. Raises Replaced, NotReachable, FileNotFoundError."""
        block_bytes, end = self.cache.block_bytes, min(offset + length, entry.size)
        identity = self.identity(path, entry)
        pieces = []
        while offset < end:
            number = offset // block_bytes
            within = offset - number * block_bytes
            self._fetch_ahead(path, entry, identity, number)
            with self.cache.opened(identity, number, lambda a, b: self._fetched(path, entry, a, b)) as descriptor:
                piece = os.pread(descriptor, min(end - offset, block_bytes - within), within)
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces)

    def keep(self, path: str, entry: Entry, number: int) -> None:
        """Have a block in the cache."""
        identity = self.identity(path, entry)
        with self.cache.opened(identity, number, lambda a, b: self._fetched(path, entry, a, b)):
            pass

    # -------------------------------------------------------------------------------------------- changing

    def upload(self, path: str, descriptor: int) -> None:
        """Replace the object by the content of the descriptor's file. Raises NotReachable."""
        with reaching(self.access):
            # By descriptor: the file may have no name any more.
            self.filesystem.put_file(f"/proc/self/fd/{descriptor}", self.key(path))
        self.forget(path)

    def remove(self, path: str) -> None:
        with reaching(self.access):
            self.filesystem.rm_file(self.key(path))
        self.forget(path)

    def rename(self, old: str, new: str) -> None:
        """A copy and a removal: buckets cannot rename. A crash in between leaves both."""
        with reaching(self.access):
            self.filesystem.cp_file(self.key(old), self.key(new))
        self.forget(new)
        self.remove(old)

    def _fetched(self, path: str, entry: Entry, start: int, end: int) -> bytes:
        with reaching(self.access):
            data, version = fetch_range(self.filesystem, self.access.kind, self.key(path), start, end)
        # If the answer lacks its version, the bucket is queried: afterwards, as it could change in between.
        if (version or self.current(path).version) != entry.version:
            raise Replaced(f"{path} was replaced while it was read")
        return data

    def _fetch_ahead(self, path: str, entry: Entry, identity: Identity, number: int) -> None:
        """A reader of a block will probably read the next ones: they are fetched meanwhile."""
        last = identity.blocks(self.cache.block_bytes) - 1
        if not number or number >= last:
            # The first block alone predicts nothing: many programs read only the head of a file.
            return
        with self._lock:
            self._ahead = {key: future for key, future in self._ahead.items() if not future.done()}
            for wanted in range(number + 1, min(number + READ_AHEAD, last) + 1):
                key = (identity.digest, wanted)
                if key not in self._ahead and len(self._ahead) < WORKERS and not self.cache.has(identity, wanted):
                    self._ahead[key] = self._pool.submit(self.keep, path, entry, wanted)


def _file_entry(name: str, raw: dict[str, Any]) -> Entry:
    modified = raw.get("LastModified") or raw.get("mtime")
    version = raw.get("generation") or raw.get("ETag") or raw.get("etag") or ""
    return Entry(
        name=name,
        is_directory=raw.get("type") == "directory",
        size=int(raw.get("size") or 0),
        modified_at=modified.timestamp() if modified is not None else 0.0,
        version=str(version).strip('"'),
    )
