"""Uploads in parts, so that an interrupted upload can be continued.

An upload is a directory: `upload.json` describes the file, `data` is the growing file, and `have` lists its parts. A
part is listed only after its checksum was verified; if a process dies before that, the next attempt overwrites the
bytes. The file is not visible in the volume until it is complete, verified and renamed.

An upload's id is computed from its description, so the same request finds the same upload, also after a restart of
either side.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from typing import TypeVar

from corral.control.ports.volume_files import (
    FileMissing,
    FileRefused,
    FilesUnavailable,
    StagedFile,
)
from corral.core.storage.checksums import checksum_of, new_checksum
from corral.core.storage.volumes import UPLOADS_DIRECTORY
from corral.files import open_below, open_trusted
from corral.files.descriptors import make_file, open_file, scan
from corral.files.removal import remove_below
from corral.stores.storage.untrusted_tree import pieces_of

STALE_SECONDS = 7 * 24 * 3600.0
MIN_PART_BYTES = 64 * 1024
MAX_PART_BYTES = 256 * 1024 * 1024
MAX_PARTS = 100_000

_ABOUT = "upload.json"
_DATA = "data"
_HAVE = "have"
_DRAFT = "draft-"
#: One line of `have`: the number of a part. A truncated line is ignored.
_LINE_BYTES = 11
#: How often a request retries an upload that another request completes.
_LOCK_SECONDS = 0.02

Published = TypeVar("Published")


class ChecksumMismatch(Exception):
    """The checksum does not match."""


class PartsMissing(Exception):
    """Parts of the upload are missing."""

    def __init__(self, missing: list[int]) -> None:
        super().__init__(f"{len(missing)} parts are missing")
        self.missing = missing


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadOrder:
    """Description of an upload. The id is computed from all fields: another size or time is another upload."""

    path: str
    size_bytes: int
    part_bytes: int
    #: checksum of the whole file, if it is known before
    checksum: str | None
    modified_ms: int | None
    user: str

    @property
    def id(self) -> str:
        return checksum_of([json.dumps(asdict(self), sort_keys=True).encode()])[:32]

    @property
    def parts(self) -> int:
        return -(-self.size_bytes // self.part_bytes)

    def bytes_of(self, part: int) -> int:
        return min(self.part_bytes, self.size_bytes - part * self.part_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    id: str
    order: UploadOrder
    #: the received parts
    have: frozenset[int]

    @property
    def missing(self) -> list[int]:
        return [part for part in range(self.order.parts) if part not in self.have]

    @property
    def missing_bytes(self) -> int:
        return sum(map(self.order.bytes_of, self.missing))


class Uploads:
    """The open uploads below one directory: a volume's root, or a staging directory of the server for storages that
    accept whole files only."""

    def __init__(self, root: str) -> None:
        self._root = root

    def begin(self, order: UploadOrder) -> Upload:
        """A new upload, or the open one of the same order."""
        with _as_upload_errors(), self._directory(make=True) as directory:
            with contextlib.suppress(FileExistsError):
                os.mkdir(order.id, 0o700, dir_fd=directory)
            with _inner(directory, order.id) as upload:
                _write_whole(upload, _ABOUT, json.dumps(asdict(order)).encode())
                descriptor = make_file(upload, _DATA, is_new=False)
                os.close(descriptor)
                return Upload(id=order.id, order=order, have=_have(upload, order))

    def get(self, upload_id: str) -> Upload:
        with self._opened(upload_id) as (upload, order):
            return Upload(id=upload_id, order=order, have=_have(upload, order))

    @contextlib.contextmanager
    def part(self, upload_id: str, number: int) -> Iterator[PartWriter]:
        """Opens one part for writing. It counts only after `PartWriter.finish`."""
        with self._opened(upload_id) as (upload, order):
            if not 0 <= number < order.parts:
                raise FileRefused(f"there is no part {number}: they go from 0 to {order.parts - 1}")
            data = open_file(upload, _DATA, to_write=True)
            try:
                yield PartWriter(data, upload, order, number)
            finally:
                os.close(data)

    def complete(
        self, upload_id: str, checksum: str, publish: Callable[[StagedFile, UploadOrder], Published]
    ) -> Generator[None, None, Published]:
        """Verify the whole file, step by step, and publish it. Of two simultaneous requests, the second finds no
        upload."""
        with self._opened(upload_id) as (upload, _), contextlib.ExitStack() as stack:
            while not _try_lock(upload, stack):
                yield
                time.sleep(_LOCK_SECONDS)
            # Read now: another request may have completed the upload meanwhile.
            order = _order(upload)
            missing = Upload(id=upload_id, order=order, have=_have(upload, order)).missing
            if missing:
                raise PartsMissing(missing)
            yield from self._verify(upload, upload_id, order, checksum)
            published = publish(self._staged(upload, _DATA, f"{upload_id}/{_DATA}", order), order)
            self.abort(upload_id)
            return published

    def put(
        self, order: UploadOrder, content: bytes, publish: Callable[[StagedFile, UploadOrder], Published]
    ) -> Published:
        """A small file in one request. If this process dies, its draft is removed like an upload."""
        found = checksum_of([content])
        if order.checksum != found:
            raise ChecksumMismatch(f"it has the checksum {found}, not {order.checksum}")
        name = _DRAFT + os.urandom(8).hex()
        with _as_upload_errors(), self._directory(make=True) as directory:
            try:
                with os.fdopen(make_file(directory, name), "wb") as draft:
                    draft.write(content)
                return publish(self._staged(directory, name, name, order), order)
            finally:
                # Renamed already, unless an error occurred.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=directory)

    def abort(self, upload_id: str) -> None:
        """Remove an upload, if it exists."""
        with contextlib.suppress(FileMissing), _as_upload_errors(), self._directory(make=False) as directory:
            _check_id(upload_id)
            remove_below(directory, upload_id)

    def sweep(self, before: float) -> list[str]:
        """Remove uploads without new parts since then; returns their ids."""
        swept = []
        with contextlib.suppress(FileMissing), _as_upload_errors(), self._directory(make=False) as directory:
            with scan(directory) as found:
                names = [each.name for each in found]
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    if name.startswith(_DRAFT) and os.stat(name, dir_fd=directory).st_mtime < before:
                        os.unlink(name, dir_fd=directory)
                    elif _is_id(name) and _last_change(directory, name) < before:
                        swept.append(name)
        for name in swept:
            self.abort(name)
        return swept

    def _staged(self, directory: int, name: str, path: str, order: UploadOrder) -> StagedFile:
        return StagedFile(
            directory=directory,
            name=name,
            path=os.path.join(self._root, UPLOADS_DIRECTORY, path),
            size_bytes=order.size_bytes,
            modified_ms=order.modified_ms,
        )

    def _verify(self, upload: int, upload_id: str, order: UploadOrder, checksum: str) -> Generator[None, None, None]:
        whole = new_checksum()
        data = open_file(upload, _DATA)
        try:
            for piece in pieces_of(data, 0, order.size_bytes):
                whole.update(piece)
                yield
        finally:
            os.close(data)
        found = whole.hexdigest()
        if checksum != found or order.checksum not in (None, found):
            # It is unknown which part is wrong: the next attempt starts from the beginning.
            self.abort(upload_id)
            raise ChecksumMismatch(f"the whole has the checksum {found}, not {checksum}")

    @contextlib.contextmanager
    def _opened(self, upload_id: str) -> Iterator[tuple[int, UploadOrder]]:
        _check_id(upload_id)
        with _as_upload_errors(), self._directory(make=False) as directory, _inner(directory, upload_id) as upload:
            yield upload, _order(upload)

    @contextlib.contextmanager
    def _directory(self, *, make: bool) -> Iterator[int]:
        try:
            root = open_trusted(self._root)
        except OSError as error:
            raise FilesUnavailable(f"{self._root} cannot be opened: {error.strerror}") from error
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(UPLOADS_DIRECTORY, 0o700, dir_fd=root)
            with _inner(root, UPLOADS_DIRECTORY) as directory:
                if os.fstat(directory).st_uid != os.geteuid():
                    raise FileRefused(f"{UPLOADS_DIRECTORY} is not the server's: a job has replaced it; remove it")
                yield directory
        finally:
            os.close(root)


class PartWriter:
    def __init__(self, data: int, upload: int, order: UploadOrder, number: int) -> None:
        self._data = data
        self._upload = upload
        self._number = number
        self._at = number * order.part_bytes
        self._left = order.bytes_of(number)
        self._checksum = new_checksum()
        #: the part was received before: it is only verified, so that valid bytes are not overwritten
        self._is_there = number in _have(upload, order)

    def write(self, piece: bytes | bytearray) -> None:
        if len(piece) > self._left:
            raise FileRefused(f"part {self._number} is longer than it should be, by {len(piece) - self._left} bytes")
        self._checksum.update(piece)
        self._left -= len(piece)
        view = memoryview(piece)
        while view and not self._is_there:
            written = os.pwrite(self._data, view, self._at)
            view = view[written:]
            self._at += written

    def finish(self, checksum: str) -> None:
        """List the part, if its checksum matches."""
        if self._left:
            raise FileRefused(f"part {self._number} is shorter than it should be, by {self._left} bytes")
        found = self._checksum.hexdigest()
        if found != checksum:
            raise ChecksumMismatch(f"part {self._number} has the checksum {found}, not {checksum}")
        if self._is_there:
            return
        have = make_file(self._upload, _HAVE, is_new=False, to_append=True)
        try:
            os.write(have, b"%010d\n" % self._number)
        finally:
            os.close(have)


def _order(upload: int) -> UploadOrder:
    descriptor = open_file(upload, _ABOUT)
    with os.fdopen(descriptor, "rb") as about:
        try:
            return UploadOrder(**json.load(about))
        except (ValueError, TypeError) as error:
            raise FileMissing(f"the upload cannot be read: {error}") from error


def _have(upload: int, order: UploadOrder) -> frozenset[int]:
    try:
        descriptor = open_file(upload, _HAVE)
    except FileNotFoundError:
        return frozenset()
    with os.fdopen(descriptor, "rb") as lines:
        text = lines.read()
    whole = (text[at : at + _LINE_BYTES] for at in range(0, len(text) - len(text) % _LINE_BYTES, _LINE_BYTES))
    return frozenset(number for line in whole if line.strip().isdigit() and (number := int(line)) < order.parts)


def _last_change(directory: int, upload_id: str) -> float:
    with _inner(directory, upload_id) as upload:
        times = [os.fstat(upload).st_mtime]
        for name in (_DATA, _HAVE):
            with contextlib.suppress(FileNotFoundError):
                times.append(os.stat(name, dir_fd=upload, follow_symlinks=False).st_mtime)
        return max(times)


def _write_whole(directory: int, name: str, content: bytes) -> None:
    """Write a draft and rename it, so that simultaneous requests never read half of the file."""
    draft = f"{name}.{os.urandom(6).hex()}"
    descriptor = make_file(directory, draft)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)


@contextlib.contextmanager
def _inner(directory: int, name: str) -> Iterator[int]:
    descriptor = open_below(directory, (name,))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(upload: int, stack: contextlib.ExitStack) -> bool:
    """Whether the upload is locked now, until the stack ends or this process does."""
    try:
        fcntl.flock(upload, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    stack.callback(fcntl.flock, upload, fcntl.LOCK_UN)
    return True


def _is_id(text: str) -> bool:
    return len(text) == 32 and not set(text) - set("0123456789abcdef")


def _check_id(text: str) -> None:
    if not _is_id(text):
        raise FileMissing(f"{text!r} is no upload")


@contextlib.contextmanager
def _as_upload_errors() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing("there is no such upload") from error
    except OSError as error:
        raise FileRefused(f"it cannot be written: {error.strerror}") from error
