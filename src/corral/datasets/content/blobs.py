"""The stores of bytes: named objects in a directory, a bucket, or another service.

Names are relative, with slashes, made by this package only. An object is published completely or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from corral.datasets.errors import DatasetError, ObjectMissing

#: How many buffers one system call takes.
_MOST_BUFFERS = 512
_PARTIAL = ".partial-"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    name: str
    size: int
    #: seconds since 1970 by the storage's clock; 0 if it is unknown
    modified_at: float


class BlobStore(Protocol):
    """A store of objects. All methods may be called by many threads at once.

    An object that was put is seen by every later `get` and `objects`, also from other machines: collecting garbage
    while commits run depends on it. Directories, S3 and GCS guarantee this.
    """

    @property
    def where(self) -> str:
        """The name of this storage for users; without secrets."""

    @property
    def parallel(self) -> int:
        """The number of concurrent requests that is fastest."""

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        """Publish an object atomically; it is stored when this returns. An existing one is replaced."""

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object, or `length` of them from `offset` on (fewer at its end). Raises `ObjectMissing`."""

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """The objects whose names begin with the prefix, which ends with a slash; in no order. An empty result is no
        error.
        """

    def remove(self, name: str) -> None:
        """Remove an object; a missing one is no error."""

    def sweep(self, older_than: float) -> int:
        """Remove incomplete objects that killed writers left before that time; returns their size in bytes."""


class DirectoryBlobs:
    """Objects as files of a directory."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)
        self._made: set[Path] = set()

    @property
    def where(self) -> str:
        return str(self._root)

    @property
    def parallel(self) -> int:
        return min(8, os.cpu_count() or 1)

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        try:
            self._put(self._root / name, parts)
        except OSError as error:
            raise DatasetError(f"{name} could not be written to {self.where}: {error.strerror}") from error

    def _put(self, path: Path, parts: Sequence[bytes | memoryview]) -> None:
        self._make(path.parent)
        # In the same directory, so that the rename stays in it; hidden, so that it does not count as an object.
        draft = path.with_name(f"{_PARTIAL}{os.urandom(8).hex()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            try:
                _write_all(descriptor, parts)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(draft, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
            raise
        sync_directory(path.parent)

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        try:
            descriptor = os.open(self._root / name, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectMissing(name, self.where) from None
        try:
            wanted = max(0, os.fstat(descriptor).st_size - offset) if length is None else length
            first = os.pread(descriptor, wanted, offset)
            if len(first) == wanted:
                return first
            # One call reads at most 2 GiB, and less where the file ends.
            parts, at = [first], offset + len(first)
            while part := os.pread(descriptor, wanted - (at - offset), at):
                parts.append(part)
                at += len(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        for folder, _, names in os.walk(self._root / prefix):
            for name in names:
                path = Path(folder, name)
                if not name.startswith(_PARTIAL):
                    try:
                        status = path.stat()
                    except FileNotFoundError:
                        continue  # removed since the directory was read
                    relative = path.relative_to(self._root).as_posix()
                    yield StoredObject(name=relative, size=status.st_size, modified_at=status.st_mtime)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._root / name)

    def sweep(self, older_than: float) -> int:
        freed = 0
        for folder, _, names in os.walk(self._root):
            for name in names:
                if name.startswith(_PARTIAL):
                    with contextlib.suppress(FileNotFoundError):
                        status = os.stat(Path(folder, name))
                        if status.st_mtime < older_than:
                            os.unlink(Path(folder, name))
                            freed += status.st_size
        return freed

    def _make(self, folder: Path) -> None:
        if folder in self._made:
            return
        missing = [folder] if not folder.is_dir() else []
        while missing and not missing[-1].parent.is_dir():
            missing.append(missing[-1].parent)
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            sync_directory(path.parent)
        self._made.add(folder)


class FilesystemBlobs:
    """Objects in any storage that fsspec supports: S3, GCS and others where putting an object is atomic."""

    def __init__(self, filesystem: Any, root: str, *, parallel: int = 16) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._parallel = parallel

    @property
    def where(self) -> str:
        protocol = self._filesystem.protocol
        return f"{protocol if isinstance(protocol, str) else protocol[0]}://{self._root}"

    @property
    def parallel(self) -> int:
        return self._parallel

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        with self._errors_named(f"{name} could not be written to"):
            self._filesystem.pipe_file(f"{self._root}/{name}", b"".join(parts))

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        try:
            with self._errors_named(f"{name} could not be read from"):
                if offset == 0 and length is None:
                    return bytes(self._filesystem.cat_file(f"{self._root}/{name}"))
                end = None if length is None else offset + length
                return bytes(self._filesystem.cat_file(f"{self._root}/{name}", start=offset, end=end))
        except FileNotFoundError:
            raise ObjectMissing(name, self.where) from None

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        try:
            with self._errors_named(f"{prefix} could not be listed in"):
                found = self._filesystem.find(f"{self._root}/{prefix.rstrip('/')}", detail=True)
        except FileNotFoundError:
            return
        for path, details in found.items():
            yield StoredObject(
                name=path.lstrip("/")[len(self._root.lstrip("/")) + 1 :],
                size=int(details.get("size") or 0),
                modified_at=_modified_at(details),
            )

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), self._errors_named(f"{name} could not be removed from"):
            self._filesystem.rm_file(f"{self._root}/{name}")

    @contextlib.contextmanager
    def _errors_named(self, what: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            # Every library of a storage has errors of its own.
            raise DatasetError(f"{what} {self.where}: {str(error) or type(error).__name__}") from error

    def sweep(self, older_than: float) -> int:
        return 0


def _modified_at(details: dict[str, Any]) -> float:
    value = details.get("LastModified") or details.get("mtime") or details.get("updated") or 0.0
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.timestamp() if isinstance(value, datetime) else float(value)


def _write_all(descriptor: int, parts: Sequence[bytes | memoryview]) -> None:
    views = [memoryview(part).cast("B") for part in parts if len(part)]
    while views:
        written = os.writev(descriptor, views[:_MOST_BUFFERS])
        done = 0
        while done < len(views) and written >= len(views[done]):
            written -= len(views[done])
            done += 1
        views = views[done:]
        if written:
            views[0] = views[0][written:]


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems do not support this; there the server keeps the order.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blobs = DirectoryBlobs(path.parent)
    blobs.put(path.name, [data])


def remove_tree(path: Path) -> None:
    """Removes a tree, also with read-only directories in it."""
    for folder, folders, _ in os.walk(path):
        for name in folders:
            if not os.path.islink(os.path.join(folder, name)):
                os.chmod(os.path.join(folder, name), 0o700)
    if path.is_dir() and not path.is_symlink():
        os.chmod(path, 0o700)
        shutil.rmtree(path)
