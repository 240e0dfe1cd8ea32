"""The files of a volume that is a directory. Jobs write to it: nothing in it is trusted (see `untrusted_tree`).

Writes follow no links, and new files get the owner and the permissions of the volume's root: access to the volume was
decided when that directory was created.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.control.ports import OutputMissing, OutputRefused
from corral.control.ports.volume_files import (
    FileKind,
    FileMissing,
    FileRefused,
    FilesUnavailable,
    StagedFile,
    StoredFile,
)
from corral.core.storage.volumes import UPLOADS_DIRECTORY
from corral.files import open_below, open_trusted
from corral.files.descriptors import open_file, ordered_names
from corral.files.removal import remove_below
from corral.stores.storage.untrusted_tree import Descent, OpenedPath

#: Each level of a walk keeps a descriptor open.
_MAX_DEPTH = 128
#: Errors of a full disk or quota.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedInDirectory:
    """Implements `corral.control.ports.volume_files.OpenedFile`."""

    opened: OpenedPath

    @property
    def size_bytes(self) -> int:
        return self.opened.size_bytes

    @property
    def modified_ms(self) -> int:
        return os.fstat(self.opened.descriptor).st_mtime_ns // 1_000_000

    @property
    def tag(self) -> str:
        return self.opened.tag

    def pieces(self, start: int, length: int) -> Iterator[bytes]:
        return self.opened.pieces(start, length)

    def close(self) -> None:
        self.opened.close()


class DirectoryFiles:
    """Implements `corral.control.ports.volume_files.VolumeFiles`."""

    keeps_times = True

    def __init__(self, root: str) -> None:
        self.root = root

    def listed(
        self, path: Sequence[str], *, recursive: bool, after: Sequence[str] | None, limit: int
    ) -> tuple[list[StoredFile], Sequence[str] | None]:
        found: list[StoredFile] = []
        last: tuple[str, ...] | None = None
        with _as_file_errors(), self._descent() as descent:
            _check_visible(path)
            opened = descent.open(path)
            try:
                if not opened.is_directory:
                    raise FileRefused("it is a file, not a directory")
                for way, entry in _walk(descent, opened.descriptor, tuple(path), after or (), recursive):
                    if len(found) == limit:
                        return found, last
                    found.append(entry)
                    last = way[len(path) :]
            finally:
                opened.close()
        return found, None

    def stat(self, path: Sequence[str]) -> StoredFile:
        with _as_file_errors(), self._descent() as descent:
            _check_visible(path)
            opened = descent.open(path)
            try:
                return _stored(path, os.fstat(opened.descriptor))
            finally:
                opened.close()

    def open(self, path: Sequence[str]) -> OpenedInDirectory:
        with _as_file_errors(), self._descent() as descent:
            _check_visible(path)
            opened = descent.open(path)
            if opened.is_directory:
                opened.close()
                raise FileRefused("it is a directory, not a file")
            return OpenedInDirectory(opened=opened)

    def make_directory(self, path: Sequence[str]) -> StoredFile:
        with _as_file_errors(), self._writable_directory(path, make=True) as directory:
            return _stored(path, os.fstat(directory))

    def publish(self, staged: StagedFile, path: Sequence[str]) -> StoredFile:
        *parents, name = _named(path)
        with _as_file_errors():
            descriptor = open_file(staged.directory, staged.name)
            try:
                with self._writable_directory(parents, make=True) as directory:
                    _check_no_directory(name, directory)
                    self._give_away(descriptor, is_directory=False)
                    if staged.modified_ms is not None:
                        os.utime(descriptor, ns=(staged.modified_ms * 1_000_000,) * 2)
                    # The file must be complete under its final name, also after a power failure.
                    os.fsync(descriptor)
                    os.rename(staged.name, name, src_dir_fd=staged.directory, dst_dir_fd=directory)
                    return _stored(path, os.fstat(descriptor))
            finally:
                os.close(descriptor)

    def delete(self, path: Sequence[str], *, recursive: bool) -> None:
        *parents, name = _named(path)
        with _as_file_errors(), self._writable_directory(parents, make=False) as directory:
            is_directory = stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
            if not is_directory:
                os.unlink(name, dir_fd=directory)
            elif recursive:
                if not remove_below(directory, name):
                    raise FileRefused("some of it cannot be removed")
            else:
                os.rmdir(name, dir_fd=directory)

    def open_root(self) -> int:
        """A descriptor of the volume's root, which jobs cannot replace."""
        try:
            return open_trusted(self.root)
        except OSError as error:
            raise FilesUnavailable(f"the volume's directory cannot be opened: {error.strerror}") from error

    def _descent(self) -> Descent:
        return Descent(self.open_root(), self.root, "the volume", is_shared=True)

    @contextlib.contextmanager
    def _writable_directory(self, path: Sequence[str], *, make: bool) -> Iterator[int]:
        """Follows no link, not even one that leads to a place inside."""
        _check_visible(path)
        descriptor = self.open_root()
        try:
            for name in path:
                inner = self._opened_directory(name, descriptor, make)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _opened_directory(self, name: str, parent: int, make: bool) -> int:
        made = False
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
                made = True
        try:
            descriptor = open_below(parent, (name,))
        except OSError as error:
            if make and error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise FileRefused(f"{name!r} on the way to it is no directory") from error
            raise
        # Only directories that were created here: a job may have replaced one.
        if made and os.fstat(descriptor).st_uid == os.geteuid():
            self._give_away(descriptor, is_directory=True)
        return descriptor

    def _give_away(self, descriptor: int, *, is_directory: bool) -> None:
        """Give the file to the volume's account, so that its jobs can use it."""
        root = self.open_root()
        try:
            like = os.fstat(root)
        finally:
            os.close(root)
        mode = stat.S_IMODE(like.st_mode)
        if os.geteuid() == 0:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, mode if is_directory else mode & 0o666)


def _walk(
    descent: Descent, directory: int, path: tuple[str, ...], after: Sequence[str], recursive: bool
) -> Iterator[tuple[tuple[str, ...], StoredFile]]:
    """Walks a directory by name, each directory before its entries. `after` is the end of the previous page, relative
    to `path`.
    """
    if len(path) > _MAX_DEPTH:
        raise FileRefused(f"{'/'.join(path[:3])}/… has more than {_MAX_DEPTH} directories in each other")
    for name in ordered_names(directory, begin=after[0] if after else ""):
        if not path and name == UPLOADS_DIRECTORY:
            continue
        is_continued = bool(after) and name == after[0]
        way = (*path, name)
        entry, is_real_directory = _entry(descent, directory, way)
        if entry is None:
            continue
        if not is_continued:
            yield way, entry
        if recursive and is_real_directory:
            try:
                inner = open_below(directory, (name,))
            except OSError:
                continue  # deleted or changed since it was listed
            try:
                yield from _walk(descent, inner, way, after[1:] if is_continued else (), recursive)
            finally:
                os.close(inner)


def _entry(descent: Descent, directory: int, way: tuple[str, ...]) -> tuple[StoredFile | None, bool]:
    """The entry of a name, and whether it is a directory itself and not a link to one."""
    try:
        found = os.stat(way[-1], dir_fd=directory, follow_symlinks=False)
    except OSError:
        return None, False  # deleted meanwhile
    if not stat.S_ISLNK(found.st_mode):
        return _stored(way, found), stat.S_ISDIR(found.st_mode)
    with contextlib.suppress(OutputMissing, OutputRefused):
        target = descent.open(way)
        try:
            return _stored(way, os.fstat(target.descriptor)), False
        finally:
            target.close()
    return _stored(way, found), False


def _stored(path: Sequence[str], found: os.stat_result) -> StoredFile:
    text = "/".join(path)
    kind = FileKind.OTHER
    if stat.S_ISREG(found.st_mode):
        kind = FileKind.FILE
    elif stat.S_ISDIR(found.st_mode):
        kind = FileKind.DIRECTORY
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if shown != text and kind is FileKind.FILE:
        # Its name is not valid text, so no request can name it.
        kind = FileKind.OTHER
    size = found.st_size if kind is FileKind.FILE else 0
    return StoredFile(path=shown, kind=kind, size_bytes=size, modified_ms=found.st_mtime_ns // 1_000_000)


def _named(path: Sequence[str]) -> Sequence[str]:
    if not path:
        raise FileRefused("it is the volume itself")
    _check_visible(path)
    return path


def _check_visible(path: Sequence[str]) -> None:
    if path and path[0] == UPLOADS_DIRECTORY:
        raise FileMissing("uploads have no names yet")


def _check_no_directory(name: str, directory: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise FileRefused("a directory has that name")


@contextlib.contextmanager
def _as_file_errors() -> Iterator[None]:
    try:
        yield
    except OutputMissing as error:
        raise FileMissing(str(error)) from error
    except OutputRefused as error:
        raise FileRefused(str(error)) from error
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileRefused("the directory is not empty") from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise FileMissing(str(error)) from error
        if error.errno in _FULL:
            raise FileRefused(f"there is no room for it: {error.strerror}") from error
        raise FileRefused(f"it cannot be used: {error.strerror}") from error
