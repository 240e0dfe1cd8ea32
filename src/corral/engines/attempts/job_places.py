"""The directories that an attempt uses, and whose they are: its working and temporary directory, and the job's own.

The run directory itself stays the server's, logs and records too: a job cannot touch them. Where jobs run as accounts
of their own, directories are handed over and the way to them is opened for passing, not for looking. Runs forked from
the spawner, so only the standard library is imported here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from corral import files
from corral.engines.attempts.instance_messages import Owner
from corral.files import Place, remove_tree

__all__ = ["barrier", "hand_over", "make_private", "open_way", "remove_tree"]


def make_private(path: str, owner: Owner | None) -> None:
    """A directory that only the job uses, in one that no job can change; one that an earlier supervisor left is
    emptied."""
    remove_tree(path)
    os.mkdir(path, mode=0o700)
    if owner is not None:
        with Place.at(os.path.dirname(path), os.path.basename(path)) as made:
            files.hand_over(made.descriptor, owner["uid"], owner["gid"])


def hand_over(paths: Sequence[str], owner: Owner) -> None:
    """Give directories to the account, with what in them the server made. Those that lie in others of them are opened
    from there: by then the account can replace them. What is not there is left out. Raises OSError."""
    for path in paths:
        outermost = min((other for other in paths if f"{path}/".startswith(f"{other}/")), key=len)
        trusted, name = os.path.split(outermost)
        below = [part for part in path[len(outermost) :].split("/") if part]
        try:
            place = Place.at(trusted, name, *below)
        except FileNotFoundError:
            continue
        with place:
            files.hand_over(place.descriptor, owner["uid"], owner["gid"])


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


def barrier(path: str) -> str | None:
    """The first directory on the way that accounts other than its owner cannot pass, or None."""
    way = os.path.abspath(path)
    blocked = None
    while way != "/":
        if os.path.isdir(way) and not os.stat(way).st_mode & 0o001:
            blocked = way
        way = os.path.dirname(way)
    return blocked
