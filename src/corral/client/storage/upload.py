"""The upload of one file to a volume, from this machine or from another volume. A small file is one request; a larger
one is sent in parts, several in parallel, without the parts that the server already has."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from corral.client.http.errors import ApiProblem, NotFound, ServerUnreachable
from corral.client.http.retries import Persistence
from corral.client.storage.download import NotVerified
from corral.client.storage.volume_files import VolumeFiles
from corral.core.storage.checksums import checksum_of, new_checksum

SMALL_BYTES = 1024 * 1024
PART_BYTES = 8 * 1024 * 1024
MAX_PARTS = 50_000


class Source(Protocol):
    """A file that is read in parts, in order."""

    size: int
    modified_ms: int

    def read(self, start: int, length: int) -> bytes: ...

    def checksum(self) -> str:
        """The checksum of the whole file; called after the last part was read."""

    #: whether the whole file must be read to compute its checksum
    must_be_read: bool


class LocalSource:
    must_be_read = True

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        found = os.fstat(self._file.fileno())
        self.size = found.st_size
        self.modified_ms = found.st_mtime_ns // 1_000_000
        self._checksum = new_checksum()
        self._seen = 0

    def read(self, start: int, length: int) -> bytes:
        content = os.pread(self._file.fileno(), length, start)
        if len(content) != length:
            raise NotVerified("it became shorter while it was sent")
        if start == 0:
            self._checksum, self._seen = new_checksum(), 0
        if start == self._seen:
            self._checksum.update(content)
            self._seen += length
        return content

    def checksum(self) -> str:
        if os.fstat(self._file.fileno()).st_mtime_ns // 1_000_000 != self.modified_ms:
            raise NotVerified("it changed while it was sent")
        return self._checksum.hexdigest()

    def close(self) -> None:
        self._file.close()


class VolumeSource:
    """A file of another volume: only the parts that the target lacks are fetched, into this machine's memory."""

    must_be_read = False

    def __init__(
        self, files: VolumeFiles, volume: str, path: str, size: int, modified_ms: int, persistence: Persistence
    ) -> None:
        self._files = files
        self._volume = volume
        self._path = path
        self.size = size
        self.modified_ms = modified_ms
        self._persistence = persistence

    def read(self, start: int, length: int) -> bytes:
        return self._persistence.keep_trying(lambda: self._fetched(start, length)) if length else b""

    def checksum(self) -> str:
        found = self._persistence.keep_trying(lambda: self._files.checksum(self._volume, self._path, self.size))
        return found["checksum"]

    def close(self) -> None:
        """No file is open."""

    def _fetched(self, start: int, length: int) -> bytes:
        headers = {"Range": f"bytes={start}-{start + length - 1}"}
        with self._files.opened(self._volume, self._path, headers) as answer:
            content = answer.read()
        if len(content) != length:
            raise ServerUnreachable("the server", f"{self._path} ended early")
        return content


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    size_bytes: int
    #: how many of them the server had from an earlier upload
    resumed_bytes: int


class Upload:
    def __init__(
        self,
        files: VolumeFiles,
        volume: str,
        path: str,
        persistence: Persistence,
        progress: Callable[[int], None],
        parts: Executor,
        room: threading.Semaphore,
    ) -> None:
        """`room` limits the parts that all uploads together hold in memory."""
        self._files = files
        self._volume = volume
        self._path = path
        self._persistence = persistence
        self._progress = progress
        self._parts = parts
        self._room = room

    def run(self, source: Source) -> Sent:
        if source.size <= SMALL_BYTES:
            return self._send_small(source)
        # The source changed, or a part was damaged on the server's disk: the upload starts again once.
        for last in (False, True):
            try:
                return self._send(source)
            except ApiProblem as problem:
                if problem.slug != "checksum-mismatch" or last:
                    raise
                self._progress(-source.size)
        raise AssertionError("the loop returns or raises")

    def _send_small(self, source: Source) -> Sent:
        content = source.read(0, source.size)
        checksum = checksum_of([content])
        self._persistence.keep_trying(
            lambda: self._files.put(self._volume, self._path, content, checksum, source.modified_ms)
        )
        self._progress(source.size)
        return Sent(size_bytes=source.size, resumed_bytes=0)

    def _send(self, source: Source) -> Sent:
        part_bytes = max(PART_BYTES, -(-source.size // MAX_PARTS))
        begun = self._persistence.keep_trying(
            lambda: self._files.begin_upload(self._volume, self._path, source.size, part_bytes, source.modified_ms)
        )
        upload, have = begun["id"], frozenset(begun["have"])
        resumed = 0
        with self._sending(upload, source) as send:
            for part, start in enumerate(range(0, source.size, part_bytes)):
                self._persistence.check()
                length = min(part_bytes, source.size - start)
                if part in have:
                    resumed += length
                    self._progress(length)
                    if source.must_be_read:
                        source.read(start, length)
                    continue
                send(part, start, length)
        self._complete(upload, source)
        return Sent(size_bytes=source.size, resumed_bytes=resumed)

    @contextmanager
    def _sending(self, upload: str, source: Source) -> Iterator[Callable[[int, int, int], None]]:
        """Parts are read in order and sent in parallel; on exit all parts have arrived."""
        open_parts: list[Future[None]] = []

        def send(part: int, start: int, length: int) -> None:
            for done in [each for each in open_parts if each.done()]:
                done.result()
                open_parts.remove(done)
            self._room.acquire()
            try:
                content = source.read(start, length)
                future = self._parts.submit(self._send_part, upload, part, content)
            except BaseException:
                self._room.release()
                raise
            future.add_done_callback(lambda _: self._room.release())
            open_parts.append(future)

        try:
            yield send
        finally:
            for each in open_parts:
                each.exception()
        for each in open_parts:
            each.result()

    def _send_part(self, upload: str, part: int, content: bytes) -> None:
        checksum = checksum_of([content])
        self._persistence.keep_trying(lambda: self._files.put_part(self._volume, upload, part, content, checksum))
        self._progress(len(content))

    def _complete(self, upload: str, source: Source) -> None:
        checksum = source.checksum()
        try:
            self._persistence.keep_trying(
                lambda: self._files.complete_upload(self._volume, upload, checksum, source.size)
            )
        except NotFound:
            # An earlier try completed the upload and its answer got lost, or the server removed the parts: the file's
            # checksum shows which.
            found = self._files.checksum(self._volume, self._path, source.size)
            if found["checksum"] != checksum:
                raise
