"""The directories that an attempt uses, and whose they are: its working and temporary directory, and the job's own.

The run directory itself stays the server's, logs and records too: a job cannot touch them. Where jobs run as accounts
of their own, directories are handed over and the way to them is opened for passing, not for looking. Runs forked from
the spawner, so only the standard library is imported here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

from corral.engines.local.messages import Owner

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_private(path: str, owner: Owner | None) -> None:
    """A directory that only the job uses; one that an earlier supervisor left is emptied."""
    remove_tree(path)
    os.mkdir(path, mode=0o700)
    if owner is not None:
        os.chown(path, owner["uid"], owner["gid"])


def hand_over(path: str, owner: Owner) -> None:
    """Give a directory to the account, with what in it is not the account's yet."""
    if not os.path.isdir(path):
        return
    uid, gid = owner["uid"], owner["gid"]
    for _, directories, files, descriptor in os.fwalk(path, follow_symlinks=False):
        # By descriptor and without following links: what is in it may be the job's own work.
        for name in (*directories, *files):
            if os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_uid != uid:
                os.chown(name, uid, gid, dir_fd=descriptor, follow_symlinks=False)
            elif name in directories:
                # The account's own all the way down; there may be very much of it.
                directories.remove(name)
    os.chown(path, uid, gid, follow_symlinks=False)


def open_way(path: str, top: str) -> None:
    """Let others pass, and only pass, through the server's own directories from `top` down to `path`."""
    way = os.path.dirname(path)
    while way.startswith(top):
        found = os.stat(way)
        if found.st_uid == os.geteuid() and found.st_mode & 0o011 != 0o011:
            os.chmod(way, stat.S_IMODE(found.st_mode) | 0o011)
        if way == top:
            return
        way = os.path.dirname(way)


def remove_tree(path: str) -> None:
    """What a job left may be without permissions, already gone, or deeper than any program could recurse; only what the
    kernel refuses stays. Links are removed, not followed."""
    try:
        top = os.open(path, _DIRECTORY)
    except OSError:
        return  # gone, or nothing that was made for a job
    mark, count = secrets.token_hex(4), 0
    try:
        left = _names(top)
        while left:
            for name in left:
                count = _flatten(name, top, f".gone-{mark}-", count)
            before, left = left, _names(top)
            if left == before:
                break  # the kernel keeps the rest
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def _flatten(name: str, top: int, mark: str, count: int) -> int:
    """Remove what is right below the top. The directories in a directory are moved up first, so that nothing is ever
    looked for at a greater depth."""
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=top)
        return count
    try:
        inner = _opened(name, top)
    except OSError:
        return count
    try:
        for below in _names(inner):
            try:
                os.unlink(below, dir_fd=inner)
            except OSError:
                count += 1
                with contextlib.suppress(OSError):
                    os.rename(below, f"{mark}{count}", src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=top)
    return count


def _opened(name: str, top: int) -> int:
    """A directory, also one that nobody may enter or change."""
    inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        # Through the descriptor: the name may mean something else by now.
        with contextlib.suppress(OSError):
            os.chmod(f"/proc/self/fd/{inner}", 0o700)
        return os.open(f"/proc/self/fd/{inner}/.", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(inner)


def _names(directory: int) -> list[str]:
    return sorted(os.listdir(directory))


def barrier(path: str) -> str | None:
    """The first directory on the way that accounts other than its owner cannot pass, or None."""
    way = os.path.abspath(path)
    blocked = None
    while way != "/":
        if os.path.isdir(way) and not os.stat(way).st_mode & 0o001:
            blocked = way
        way = os.path.dirname(way)
    return blocked
