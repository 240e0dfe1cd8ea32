"""Removes a directory that a job has filled: any depth, any permissions, and nothing outside of it."""

from __future__ import annotations

import contextlib
import os
import stat

from corral.files.descriptors import open_below, open_trusted

#: Deeper directories are moved up first, so that few descriptors are open.
_MAX_DEPTH = 32
#: A limit, so that a job that keeps making directories does not keep the server busy for ever.
_MAX_ROUNDS = 10_000


def remove_tree(path: str | os.PathLike[str]) -> bool:
    """Whether nothing is left. No job may be able to replace the parent directory of `path`."""
    parent, name = os.path.split(os.path.abspath(path))
    try:
        outer = open_trusted(parent)
    except OSError:
        return not os.path.lexists(path)
    try:
        return _remove_entry(outer, name)
    finally:
        os.close(outer)


def remove_below(directory: int, name: str) -> bool:
    """The same in a directory that is held open."""
    return _remove_entry(directory, name)


def _remove_entry(outer: int, name: str) -> bool:
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=outer, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=outer)
            return True
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        os.rmdir(name, dir_fd=outer)
    except OSError:
        pass  # it is not empty, or something is mounted on it
    else:
        return True
    try:
        root = _opened(outer, name)
    except OSError:
        return False
    try:
        # Rounds end when nothing had to be moved up: moved directories are in the root by then.
        rounds = 1
        while _empty(root, root, 0) and rounds < _MAX_ROUNDS:
            rounds += 1
    finally:
        os.close(root)
    try:
        os.rmdir(name, dir_fd=outer)
    except OSError:
        return False
    return True


def _empty(root: int, directory: int, depth: int) -> bool:
    """Remove the content of a directory; True if something was moved up to the root."""
    moved = False
    try:
        with os.scandir(directory) as found:
            names = [(each.name, each.is_dir(follow_symlinks=False)) for each in found]
    except OSError:
        return False
    for name, is_directory in names:
        with contextlib.suppress(OSError):
            if not is_directory:
                os.unlink(name, dir_fd=directory)
            elif depth >= _MAX_DEPTH:
                os.rename(name, f".corral-{os.urandom(12).hex()}", src_dir_fd=directory, dst_dir_fd=root)
                moved = True
            else:
                inner = _opened(directory, name)
                try:
                    moved |= _empty(root, inner, depth + 1)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=directory)
    return moved


def _opened(directory: int, name: str) -> int:
    """A server that is not root must first give itself permissions on its own directories; mounts are not entered."""
    try:
        return _writable(open_below(directory, (name,)))
    except PermissionError:
        held = open_below(directory, (name,), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.chmod(f"/proc/self/fd/{held}", 0o700)
        finally:
            os.close(held)
        return open_below(directory, (name,))


def _writable(descriptor: int) -> int:
    if os.geteuid() != 0 and os.fstat(descriptor).st_mode & 0o700 != 0o700:
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o700)
    return descriptor
