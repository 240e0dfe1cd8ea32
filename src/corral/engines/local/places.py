"""The directories that an attempt uses, and whose they are: its working and temporary directory, and the job's own.

The run directory itself stays the server's, logs and records too: a job cannot touch them. Where jobs run as accounts
of their own, directories are handed over and the way to them is opened for passing, not for looking. Runs forked from
the spawner, so only the standard library is imported here.
"""

from __future__ import annotations

import os
import shutil
import stat

from corral.engines.local.messages import Owner


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
    """What a job left may be without permissions or already gone; only what the kernel refuses stays."""
    shutil.rmtree(path, ignore_errors=True)
    if os.path.isdir(path):
        for directory, _, _ in os.walk(path):
            try:
                os.chmod(directory, 0o700)
            except OSError:
                continue
        shutil.rmtree(path, ignore_errors=True)


def barrier(path: str) -> str | None:
    """The first directory on the way that accounts other than its owner cannot pass, or None."""
    way = os.path.abspath(path)
    blocked = None
    while way != "/":
        if os.path.isdir(way) and not os.stat(way).st_mode & 0o001:
            blocked = way
        way = os.path.dirname(way)
    return blocked
