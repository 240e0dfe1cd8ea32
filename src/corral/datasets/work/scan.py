"""Lists a directory, and opens its files again safely.

The directory may belong to another user who changes it at this moment: no path is trusted. Every step goes from an open
directory to a name in it, and never follows a link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from corral.core.storage.volumes import UPLOADS_DIRECTORY
from corral.datasets.errors import DatasetError, NotPlain, Unstable, printable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in place of a file must not make us wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: Nested directories; each is open while its content is read.
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes whenever a file's content does."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    path: str
    stamp: Stamp
    executable: bool


@dataclass(kw_only=True, slots=True)
class FoundDirectory:
    """A directory as it was found; `path` is "" for the uppermost one."""

    path: str
    files: list[FoundFile] = field(default_factory=list)
    #: name and where it points
    links: list[tuple[str, str]] = field(default_factory=list)
    directories: list[FoundDirectory] = field(default_factory=list)

    def all_files(self) -> Iterator[FoundFile]:
        yield from self.files
        for inner in self.directories:
            yield from inner.all_files()


def scan(root: int) -> FoundDirectory:
    """Finds everything below an open directory. Raises `NotPlain` for an entry that is neither file, directory nor
    link.
    """
    return _scan(root, "")


def _scan(descriptor: int, path: str) -> FoundDirectory:
    if path.count("/") >= _DEEPEST:
        raise DatasetError(f"{printable(path[:80])}… has more than {_DEEPEST} directories in each other")
    found = FoundDirectory(path=path)
    with os.scandir(descriptor) as entries:
        # Uploads to a volume do not belong to it before they are complete.
        kept = [entry for entry in entries if path or entry.name != UPLOADS_DIRECTORY]
        listed = sorted(kept, key=lambda entry: entry.name)
    for entry in listed:
        inner = f"{path}/{entry.name}" if path else entry.name
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                executable = bool(status.st_mode & stat.S_IXUSR)
                found.files.append(FoundFile(path=inner, stamp=Stamp.of(status), executable=executable))
            elif stat.S_ISLNK(status.st_mode):
                found.links.append((entry.name, os.readlink(entry.name, dir_fd=descriptor)))
            elif stat.S_ISDIR(status.st_mode):
                with _opened(entry.name, _DIRECTORY, descriptor) as below:
                    found.directories.append(_scan(below, inner))
            else:
                raise NotPlain(printable(inner))
        except FileNotFoundError:
            raise Unstable(printable(inner)) from None
        except PermissionError:
            raise DatasetError(f"{printable(inner)} may not be read") from None
    return found


@contextmanager
def open_root(directory: Path) -> Iterator[int]:
    """The directory that was named; here links are followed, because the caller chose the path."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DatasetError(f"{directory} cannot be read: {error.strerror}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Opener:
    """Opens files below a root; keeps the last directory open, since neighbours follow each other."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._folder = ""
        self._descriptor: int | None = None

    def __enter__(self) -> Opener:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @contextmanager
    def open(self, file: FoundFile) -> Iterator[int]:
        """Opens a listed file. Raises `Unstable` if it is another file by now, before or after it was read."""
        folder, _, name = file.path.rpartition("/")
        try:
            descriptor = os.open(name, _FILE, dir_fd=self._enter(folder))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                raise Unstable(printable(file.path)) from None
            raise DatasetError(f"{printable(file.path)} cannot be read: {error.strerror}") from None
        try:
            _check_same(descriptor, file)
            yield descriptor
            _check_same(descriptor, file)
        finally:
            os.close(descriptor)

    def _enter(self, folder: str) -> int:
        if folder == "":
            return self._root
        if self._descriptor is None or folder != self._folder:
            self._close()
            at = os.dup(self._root)
            for name in folder.split("/"):
                try:
                    inner = os.open(name, _DIRECTORY, dir_fd=at)
                finally:
                    os.close(at)
                at = inner
            self._folder, self._descriptor = folder, at
        return self._descriptor

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _check_same(descriptor: int, file: FoundFile) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or Stamp.of(status) != file.stamp:
        raise Unstable(printable(file.path))


@contextmanager
def _opened(name: str, flags: int, folder: int) -> Iterator[int]:
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise FileNotFoundError(name) from None  # it was a directory a moment ago
        raise
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)
