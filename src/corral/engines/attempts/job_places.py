"""The directories that an attempt uses, and their owners: its working and temporary directory, and the job's own
directories.

The run directory itself, with logs and records, stays the server's: a job cannot change it. Where jobs run as accounts
of their own, their directories are given to the account, and the directories above them may be passed but not listed.
It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence

from corral import files
from corral.engines.attempts.instance_messages import Owner
from corral.files import Place, remove_tree

__all__ = ["barrier", "give_to", "make_private", "open_path", "open_paths", "remove_tree"]


def make_private(path: str, owner: Owner | None) -> None:
    """Make a directory that only the job uses, in a directory that no job can change. If an earlier supervisor left
    one, it is emptied."""
    try:
        os.mkdir(path, mode=0o700)
    except FileExistsError:
        remove_tree(path)
        os.mkdir(path, mode=0o700)
    if owner is not None:
        with Place.at(os.path.dirname(path), os.path.basename(path)) as made:
            files.give_to(made.descriptor, owner["uid"], owner["gid"])


def give_to(paths: Sequence[str], owner: Owner) -> None:
    """Give directories to the account, with the files that the server made in them. A directory inside another one of
    them is opened relative to it, because the account can replace it. Missing directories are skipped. Raises OSError.
    """
    for path in paths:
        outermost = min((other for other in paths if f"{path}/".startswith(f"{other}/")), key=len)
        trusted, name = os.path.split(outermost)
        below = [part for part in path[len(outermost) :].split("/") if part]
        try:
            place = Place.at(trusted, name, *below)
        except FileNotFoundError:
            continue
        with place:
            files.give_to(place.descriptor, owner["uid"], owner["gid"])


def open_path(path: str, top: str) -> None:
    """The same as `open_paths` for one path."""
    open_paths((path,), top)


def open_paths(paths: Iterable[str], top: str) -> None:
    """Allows other accounts to pass through the server's own directories from `top` down to each path, without listing
    them. Each directory is looked at once.
    """
    own, seen = os.geteuid(), set[str]()
    for path in paths:
        directory = os.path.dirname(path)
        while directory.startswith(top) and directory not in seen:
            seen.add(directory)
            found = os.stat(directory)
            if found.st_uid == own and found.st_mode & 0o011 != 0o011:
                os.chmod(directory, stat.S_IMODE(found.st_mode) | 0o011)
            if directory == top:
                break
            directory = os.path.dirname(directory)


def barrier(path: str) -> str | None:
    """The first directory on the path that accounts other than its owner cannot pass, or None."""
    directory = os.path.abspath(path)
    blocked = None
    while directory != "/":
        if os.path.isdir(directory) and not os.stat(directory).st_mode & 0o001:
            blocked = directory
        directory = os.path.dirname(directory)
    return blocked
