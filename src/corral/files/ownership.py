"""Gives a directory to the account that a job runs as."""

from __future__ import annotations

import errno
import os
import stat

from corral.files.descriptors import DIRECTORY, open_below

_MAX_DEPTH = 256
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def give_to(directory: int, uid: int, gid: int) -> None:
    """Give the directory to the account, with the files that the server made in it and those of the former account. A
    file with a second hard link elsewhere keeps its owner: it may be another user's. Directories that belong to the
    account already are not entered."""
    before = os.fstat(directory)
    former = {os.geteuid(), before.st_uid} - {uid}
    if former:
        _give_to_inside(directory, uid, gid, former, 0)
    if before.st_uid != uid:
        os.fchown(directory, uid, gid)


def _give_to_inside(directory: int, uid: int, gid: int, former: set[int], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise OSError(errno.ELOOP, f"more than {_MAX_DEPTH} directories in each other")
    with os.scandir(directory) as found:
        # A quick check by name, since there may be very many; the decisive check is made when the file is held open.
        names = [each.name for each in found if _owner(each) in former]
    for name in names:
        try:
            held = open_below(directory, (name,), _LOOK)
        except OSError:
            continue  # gone, or something is mounted there
        try:
            status = os.fstat(held)
            if status.st_uid not in former or stat.S_ISLNK(status.st_mode):
                continue
            if stat.S_ISDIR(status.st_mode):
                inner = os.open(f"/proc/self/fd/{held}", DIRECTORY & ~os.O_NOFOLLOW)
                try:
                    _give_to_inside(inner, uid, gid, former, depth + 1)
                    os.fchown(inner, uid, gid)
                finally:
                    os.close(inner)
            elif status.st_nlink == 1:
                # Through the descriptor: the name may mean another file by now.
                os.chown(f"/proc/self/fd/{held}", uid, gid)
        finally:
            os.close(held)


def _owner(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except OSError:
        return -1  # gone since
