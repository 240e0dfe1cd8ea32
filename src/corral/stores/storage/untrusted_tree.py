"""Opens files below a directory that is not trusted: outputs of jobs, and volumes that jobs write to.

A job can change its directory while it is read: names become links, directories move. So every name is opened relative
to its directory's descriptor, without following links; links are resolved here, and never lead above the first
directory. The type of a file is checked after it was opened.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from corral.control.ports import OutputEntry, OutputKind, OutputMember, OutputMissing, OutputRefused
from corral.files import NotPlain, open_below
from corral.files.descriptors import open_file, ordered_names, scan

CHUNK_BYTES = 256 * 1024
#: As many links as the kernel follows in one path.
_MAX_LINKS = 40
#: Each level of a recursive read keeps a descriptor open.
MAX_DEPTH = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedPath:
    """Implements `corral.control.ports.OpenedOutput`."""

    descriptor: int
    is_directory: bool
    size_bytes: int
    modified_at: float
    tag: str
    #: the path relative to the output directory, and the uid of that directory's owner
    path: tuple[str, ...]
    owner: int

    def pieces(self, start: int, length: int) -> Iterator[bytes]:
        return pieces_of(self.descriptor, start, length)

    def members(self) -> Iterator[OutputMember]:
        return _members(self.descriptor, "", len(self.path), self.owner)

    def close(self) -> None:
        os.close(self.descriptor)


class Descent:
    """The directories of a path, kept open."""

    def __init__(
        self, root: int, root_path: str, place: str = "the output directory", *, is_shared: bool = False
    ) -> None:
        """Takes ownership of the descriptor. `place` is the directory's name in messages; several accounts write to a
        shared one."""
        self._stack = [root]
        self._root_path = root_path
        self._place = place
        self._is_shared = is_shared
        self._owner = os.fstat(root).st_uid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for descriptor in self._stack:
            os.close(descriptor)
        self._stack = []

    def open(self, path: Sequence[str]) -> OpenedPath:
        """The path relative to the output directory."""
        with as_output_errors():
            self._back_to_root()
            descriptor = self._walk(deque(path))
        found = os.fstat(descriptor)
        return OpenedPath(
            descriptor=descriptor,
            is_directory=stat.S_ISDIR(found.st_mode),
            size_bytes=found.st_size,
            modified_at=found.st_mtime,
            tag=f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"',
            path=tuple(path),
            owner=self._owner,
        )

    def listed(
        self, directory: OpenedPath, path: Sequence[str], after: str | None, limit: int
    ) -> tuple[list[OutputEntry], str | None]:
        with as_output_errors(), scan(directory.descriptor) as found:
            names = heapq.nsmallest(limit + 1, (each.name for each in found if after is None or each.name > after))
        entries = (self._entry(directory.descriptor, path, name) for name in names[:limit])
        last = names[limit - 1] if len(names) > limit else None
        return [entry for entry in entries if entry is not None], last

    def _entry(self, directory: int, path: Sequence[str], name: str) -> OutputEntry | None:
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:
            return None  # deleted meanwhile
        kind = _kind(found.st_mode)
        if kind is OutputKind.LINK:
            with contextlib.suppress(OutputMissing, OutputRefused):
                target = self.open([*path, name])
                target.close()
                kind = OutputKind.DIRECTORY if target.is_directory else OutputKind.FILE
                return OutputEntry(
                    name=name, kind=kind, size_bytes=_size(kind, target.size_bytes), modified_at=target.modified_at
                )
        return OutputEntry(name=name, kind=kind, size_bytes=_size(kind, found.st_size), modified_at=found.st_mtime)

    def _walk(self, names: deque[str]) -> int:
        """A descriptor of the named file or directory."""
        links = 0
        while names:
            name = names.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                self._up()
                continue
            found = os.stat(name, dir_fd=self._stack[-1], follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                links += 1
                if links > _MAX_LINKS:
                    raise OutputRefused("there are too many links on the way to it")
                names.extendleft(reversed(self._target(os.readlink(name, dir_fd=self._stack[-1]))))
            elif stat.S_ISDIR(found.st_mode):
                self._stack.append(open_below(self._stack[-1], (name,)))
            elif any(rest not in ("", ".") for rest in names):
                raise OutputMissing(name)
            elif not stat.S_ISREG(found.st_mode):
                raise OutputRefused("it is neither a file nor a directory")
            else:
                return _open_file(name, self._stack[-1], self._owner, is_shared=self._is_shared)
        return os.dup(self._stack[-1])

    def _target(self, text: str) -> list[str]:
        """The target of a link, relative to its directory; an absolute link is relative to the output directory."""
        if not text.startswith("/"):
            return text.split("/")
        inside = text.removeprefix(self._root_path)
        if inside == text or (inside and not inside.startswith("/")):
            raise OutputRefused(f"it is a link that leads out of {self._place}")
        self._back_to_root()
        return inside.split("/")

    def _up(self) -> None:
        if len(self._stack) == 1:
            raise OutputRefused(f"it is a link that leads out of {self._place}")
        os.close(self._stack.pop())

    def _back_to_root(self) -> None:
        while len(self._stack) > 1:
            os.close(self._stack.pop())


def _open_file(name: str, directory: int, owner: int, *, is_shared: bool = False) -> int:
    """A descriptor of a regular file; refused if it is not a file, or a hard link to a file of another account. In a
    shared directory, where several accounts own files, a hard link is refused only if not all accounts may read the
    file."""
    try:
        descriptor = open_file(directory, name)
    except NotPlain as error:
        raise OutputRefused("it is neither a file nor a directory") from error
    found = os.fstat(descriptor)
    if found.st_nlink > 1 and found.st_uid != owner and not (is_shared and found.st_mode & stat.S_IROTH):
        os.close(descriptor)
        raise OutputRefused("it is a second name of a file that belongs to another account")
    return descriptor


def _members(directory: int, prefix: str, depth: int, owner: int) -> Iterator[OutputMember]:
    if depth >= MAX_DEPTH:
        return
    for name in ordered_names(directory):
        try:
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            kind = _kind(mode)
            if kind is OutputKind.LINK:
                target = os.readlink(name, dir_fd=directory)
                if _stays_inside(prefix + name, target):
                    yield OutputMember(
                        name=prefix + name,
                        is_directory=False,
                        size_bytes=0,
                        modified_at=os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime,
                        target=target,
                        pieces=iter(()),
                    )
                continue
            if kind is OutputKind.OTHER:
                continue
            is_directory = kind is OutputKind.DIRECTORY
            descriptor = open_below(directory, (name,)) if is_directory else _open_file(name, directory, owner)
        except (OSError, OutputRefused):
            continue  # deleted, changed or made unreadable since it was listed
        try:
            opened = os.fstat(descriptor)
            yield OutputMember(
                name=prefix + name,
                is_directory=is_directory,
                size_bytes=0 if is_directory else opened.st_size,
                modified_at=opened.st_mtime,
                target=None,
                pieces=iter(()) if is_directory else pieces_of(descriptor, 0, opened.st_size),
            )
            if is_directory:
                yield from _members(descriptor, f"{prefix}{name}/", depth + 1, owner)
        finally:
            os.close(descriptor)


def _stays_inside(name: str, target: str) -> bool:
    """Whether a relative link stays below the directory; decided by its text, nothing is opened."""
    place = name.split("/")[:-1]
    if target.startswith("/"):
        return False
    for part in target.split("/"):
        if part == "..":
            if not place:
                return False
            place.pop()
        elif part not in ("", "."):
            place.append(part)
    return True


def pieces_of(descriptor: int, start: int, length: int) -> Iterator[bytes]:
    end = start + length
    while start < end:
        data = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
        if not data:
            return
        yield data
        start += len(data)


def _kind(mode: int) -> OutputKind:
    if stat.S_ISREG(mode):
        return OutputKind.FILE
    if stat.S_ISDIR(mode):
        return OutputKind.DIRECTORY
    return OutputKind.LINK if stat.S_ISLNK(mode) else OutputKind.OTHER


def _size(kind: OutputKind, size_bytes: int) -> int:
    return size_bytes if kind is OutputKind.FILE else 0


@contextlib.contextmanager
def as_output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # A new link in place of a directory counts as missing.
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL):
            raise OutputMissing(str(error)) from error
        raise OutputRefused(f"it cannot be read: {error.strerror}") from error
