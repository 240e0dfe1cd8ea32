"""Opens files by descriptor: from a directory that the server trusts down to files that a job may have changed."""

from __future__ import annotations

import ctypes
import errno
import heapq
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Non-blocking: opening a pipe would wait for a writer.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: <linux/openat2.h>; the number is the same on all architectures
_OPENAT2 = 437
_HOW = struct.Struct("=QQQ")
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_STRICT = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
#: The kernel is older, or a sandbox hides the call.
_WITHOUT_OPENAT2 = (errno.ENOSYS, errno.EPERM)
#: Names of a directory that are in memory at the same time.
PORTION = 100_000
#: Below PATH_MAX.
_PATH_BYTES = 3500

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class NotPlain(OSError):
    """A job has put something else where a regular file or a directory is expected."""


def open_trusted(path: str | os.PathLike[str]) -> int:
    """Open a directory that no job can replace: the server's own, or one that an operator named."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_below(directory: int, names: Sequence[str], flags: int = DIRECTORY) -> int:
    """A descriptor of the file or directory that the names lead to, through directories only: no link is followed and
    no other file system is entered. Raises NotPlain if a link or a mount is on the path, else OSError."""
    if not names:
        return os.dup(directory)
    held = directory
    try:
        for part, is_last in _parts(names):
            inner = _open(held, part, flags if is_last else DIRECTORY)
            if held != directory:
                os.close(held)
            held = inner
    except BaseException:
        if held != directory:
            os.close(held)
        raise
    return held


def open_directory_path(path: str) -> int:
    """A descriptor of a directory by its whole path, without following any link, for naming it only: nothing is read.
    It may be on any file system. Raises NotPlain, else OSError."""
    held = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in [part for part in path.split("/") if part]:
            try:
                inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
            except OSError as error:
                raise _failure(error.errno or errno.EIO, path, held, (name,)) from error
            os.close(held)
            held = inner
    except BaseException:
        os.close(held)
        raise
    return held


def scan(directory: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """The entries of a directory that is held open."""
    return os.scandir(directory)


def ordered_names(directory: int, *, begin: str = "") -> Iterator[str]:
    """The names in a directory that is held open, in their order, from `begin` on. A job can make millions: they are
    read in portions, and the directory is read again for each."""
    is_new = begin.__le__
    while True:
        with os.scandir(directory) as found:
            names = heapq.nsmallest(PORTION, (entry.name for entry in found if is_new(entry.name)))
        yield from names
        if len(names) < PORTION:
            return
        is_new = names[-1].__lt__


def open_file(directory: int, name: str, *, to_write: bool = False) -> int:
    """A descriptor of a regular file in the directory; never waits. Raises NotPlain, else OSError."""
    flags = FILE if not to_write else FILE & ~os.O_ACCMODE | os.O_RDWR
    descriptor = open_below(directory, (name,), flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlain(errno.EINVAL, "it is not a regular file", name)
    return descriptor


def make_file(directory: int, name: str, *, mode: int = 0o600, is_new: bool = True, to_append: bool = False) -> int:
    """A descriptor to write to a regular file in the directory: a new file, or, with `is_new=False`, an existing one
    without a second hard link. Never waits. Raises NotPlain, else OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    flags |= (os.O_EXCL if is_new else 0) | (os.O_APPEND if to_append else 0)
    try:
        descriptor = os.open(name, flags, mode, dir_fd=directory)
    except OSError as error:
        raise _failure(error.errno or errno.EIO, name, directory, (name,)) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise NotPlain(errno.EINVAL, "it is not a regular file of its own", name)
    return descriptor


def describe(error: OSError) -> str:
    """The reason, as a message for the job's owner."""
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


def _parts(names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The path in pieces that one system call accepts."""
    part: list[str] = []
    size = 0
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise NotPlain(errno.EINVAL, "it is not the name of a file", name)
        length = len(os.fsencode(name)) + 1
        if part and size + length > _PATH_BYTES:
            yield tuple(part), False
            part, size = [], 0
        part.append(name)
        size += length
    yield tuple(part), True


def _open(directory: int, names: Sequence[str], flags: int) -> int:
    path = "/".join(names)
    how = ctypes.create_string_buffer(_HOW.pack(flags, 0, _STRICT), _HOW.size)
    found = _libc.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(directory), os.fsencode(path), how, ctypes.c_size_t(_HOW.size)
    )
    if found >= 0:
        return int(found)
    number = ctypes.get_errno()
    if number in _WITHOUT_OPENAT2:
        return _step_by_step(directory, names, flags)
    raise _failure(number, path, directory, names)


def _step_by_step(directory: int, names: Sequence[str], flags: int) -> int:
    """The same without `openat2`."""
    held = os.dup(directory)
    device = os.fstat(directory).st_dev
    for name in names:
        is_last = name is names[-1]
        try:
            inner = os.open(name, flags if is_last else DIRECTORY, dir_fd=held)
        except OSError as error:
            raise _failure(error.errno or errno.EIO, "/".join(names), held, (name,)) from error
        finally:
            os.close(held)
        if os.fstat(inner).st_dev != device:
            os.close(inner)
            raise _failure(errno.EXDEV, "/".join(names), directory, names)
        held = inner
    return held


def _failure(number: int, path: str, directory: int, names: Sequence[str]) -> OSError:
    if number == errno.EXDEV:
        return NotPlain(number, "something else is mounted there", path)
    if number == errno.ELOOP:
        return NotPlain(number, "a link is in the way", path)
    if number == errno.ENXIO:
        return NotPlain(number, "it is not a regular file", path)
    if number == errno.ENOTDIR and len(names) == 1:
        try:
            mode = os.stat(names[0], dir_fd=directory, follow_symlinks=False).st_mode
        except OSError:
            mode = 0
        message = "a link is in the way" if stat.S_ISLNK(mode) else "it is not a directory"
        return NotPlain(number, message, path)
    return OSError(number, os.strerror(number), path)  # Python makes it FileExistsError and the like
