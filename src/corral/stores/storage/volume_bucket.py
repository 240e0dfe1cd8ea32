"""The files of a volume that is a bucket, or a part of one. Objects are written atomically: a staged file is uploaded
in one request, which is repeated if it is interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from corral.control.ports.volume_files import (
    FileKind,
    FileMissing,
    FileRefused,
    FilesUnavailable,
    StagedFile,
    StoredFile,
)
from corral.core.storage.checksums import checksum_of
from corral.core.storage.volumes import UPLOADS_DIRECTORY
from corral.objects.access import NotReachable, ObjectAccess, open_filesystem, reaching

#: Size of one request for a part of an object.
CHUNK_BYTES = 8 * 1024 * 1024
#: S3 takes 10,000 parts of an object.
_MAX_CHUNKS = 9_000
#: Google's chunks are multiples of this.
_CHUNK_STEP = 256 * 1024
#: Not every library can list a page after a name: the whole list is cached for the next pages.
_LISTING_SECONDS = 300.0
_LISTINGS = 4

Info = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedObject:
    """Implements `corral.control.ports.volume_files.OpenedFile`. A replacement of the object during reading is not
    detected here: the reader verifies the checksum."""

    read: Callable[[int, int], bytes]
    size_bytes: int
    modified_ms: int
    tag: str

    def pieces(self, start: int, length: int) -> Iterator[bytes]:
        end = start + length
        while start < end:
            piece = self.read(start, min(end, start + CHUNK_BYTES))
            if not piece:
                return
            yield piece
            start += len(piece)

    def close(self) -> None:
        """Does nothing: no resource is open."""


class BucketFiles:
    """Implements `corral.control.ports.volume_files.VolumeFiles`."""

    keeps_times = False

    def __init__(self, access: ObjectAccess, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._filesystem: Any = None
        self._listings: dict[tuple[str, bool], tuple[float, list[StoredFile]]] = {}

    def listed(
        self, path: Sequence[str], *, recursive: bool, after: Sequence[str] | None, limit: int
    ) -> tuple[list[StoredFile], Sequence[str] | None]:
        found = self._listing(path, recursive, is_first=not after)
        if after:
            last = "/".join((*path, *after))
            found = [entry for entry in found if entry.path > last]
        shown = found[:limit]
        more = shown[-1].path.split("/")[len(path) :] if len(found) > limit else None
        return shown, more

    def stat(self, path: Sequence[str]) -> StoredFile:
        if not path:
            return StoredFile(path="", kind=FileKind.DIRECTORY, size_bytes=0, modified_ms=0)
        with self._reached() as filesystem:
            return self._stored(filesystem.info(self._key(path)))

    def open(self, path: Sequence[str]) -> OpenedObject:
        key = self._key(path)
        with self._reached() as filesystem:
            info = filesystem.info(key)
        found = self._stored(info)
        if found.kind is not FileKind.FILE:
            raise FileRefused("it is a directory, not a file")

        def read(start: int, end: int) -> bytes:
            with self._reached() as filesystem:
                return bytes(filesystem.cat_file(key, start=start, end=end))

        return OpenedObject(
            read=read, size_bytes=found.size_bytes, modified_ms=found.modified_ms, tag=f'"{_tag(info, found)}"'
        )

    def make_directory(self, path: Sequence[str]) -> StoredFile:
        """A bucket has no directories: they appear with the files in them."""
        return StoredFile(path="/".join(path), kind=FileKind.DIRECTORY, size_bytes=0, modified_ms=0)

    def publish(self, staged: StagedFile, path: Sequence[str]) -> StoredFile:
        key = self._key(path)
        least = -(-staged.size_bytes // _MAX_CHUNKS)
        chunk = max(CHUNK_BYTES, -(-least // _CHUNK_STEP) * _CHUNK_STEP)
        with self._reached() as filesystem:
            filesystem.put_file(staged.path, key, chunksize=chunk)
            stored = self._stored(filesystem.info(key))
        if stored.size_bytes != staged.size_bytes:
            raise FilesUnavailable(f"the bucket has {stored.size_bytes} of {staged.size_bytes} bytes of {stored.path}")
        return stored

    def delete(self, path: Sequence[str], *, recursive: bool) -> None:
        key = self._key(path)
        is_file = self.stat(path).kind is FileKind.FILE
        if not is_file and not recursive:
            raise FileRefused("the directory is not empty")
        with self._reached() as filesystem:
            # Never `rm`: it treats * and ? as wildcards.
            for name in [key] if is_file else filesystem.find(key):
                filesystem.rm_file(name)

    def _listing(self, path: Sequence[str], recursive: bool, *, is_first: bool) -> list[StoredFile]:
        place, now = ("/".join(path), recursive), self._monotonic()
        with self._lock:
            at, known = self._listings.get(place, (0.0, []))
        if not is_first and known and now - at < _LISTING_SECONDS:
            return known
        found = sorted(self._asked(path, recursive), key=lambda entry: entry.path)
        with self._lock:
            self._listings.pop(place, None)
            self._listings[place] = (now, found)
            while len(self._listings) > _LISTINGS:
                self._listings.pop(next(iter(self._listings)))
        return found

    def _asked(self, path: Sequence[str], recursive: bool) -> Iterator[StoredFile]:
        key = self._key(path) if path else self._access.root
        with self._reached() as filesystem:
            try:
                infos: list[Info] = (
                    list(filesystem.find(key, detail=True).values()) if recursive else filesystem.ls(key, detail=True)
                )
            except FileNotFoundError:
                if path:
                    raise
                infos = []  # a prefix appears with its first file
        if path and not infos:
            raise FileMissing(key)
        if len(infos) == 1 and infos[0]["name"] == key and infos[0].get("type") == "file":
            raise FileRefused("it is a file, not a directory")
        for info in infos:
            # An object with the name of a directory marks the directory, for programs that need one.
            if not str(info["name"]).endswith("/") and str(info["name"]).strip("/") != key.strip("/"):
                yield self._stored(info)

    def _stored(self, info: Info) -> StoredFile:
        is_directory = info.get("type") == "directory"
        return StoredFile(
            path=str(info["name"]).strip("/").removeprefix(self._access.root).strip("/"),
            kind=FileKind.DIRECTORY if is_directory else FileKind.FILE,
            size_bytes=0 if is_directory else int(info.get("size") or 0),
            modified_ms=_modified_ms(info),
        )

    def _key(self, path: Sequence[str]) -> str:
        if not path:
            raise FileRefused("it is the volume itself")
        if path[0] == UPLOADS_DIRECTORY:
            raise FileMissing("uploads have no names yet")
        return "/".join((self._access.root, *path))

    @contextmanager
    def _reached(self) -> Iterator[Any]:
        try:
            with reaching(self._access):
                with self._lock:
                    # Once: each instance authenticates again.
                    if self._filesystem is None:
                        self._filesystem = open_filesystem(self._access)
                yield self._filesystem
        except FileNotFoundError as error:
            raise FileMissing(str(error)) from error
        except NotReachable as error:
            raise FilesUnavailable(str(error)) from error


def _tag(info: Info, found: StoredFile) -> str:
    known = next((str(info[name]) for name in ("ETag", "etag", "generation", "md5Hash") if info.get(name)), "")
    return checksum_of([f"{known}-{found.modified_ms}-{found.size_bytes}".encode()])[:32]


def _modified_ms(info: Info) -> int:
    found = info.get("LastModified") or info.get("mtime") or info.get("updated")
    if isinstance(found, str):
        found = datetime.fromisoformat(found)
    if not isinstance(found, datetime):
        return 0
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
