"""Whose job an attempt is in Slurm, and what that account must reach of the server's own files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from corral.control.ports import LaunchOrder, StorageKind
from corral.engines.local.accounts import Account
from corral.engines.local.instance_specs import job_directories
from corral.engines.local.messages import Owner, StorageSpec
from corral.engines.local.places import hand_over, open_way
from corral.engines.local.storage.mounting import let_in


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitter:
    """An account of the machines, and the one of Slurm's books that pays; "" for its default."""

    account: Account
    books: str = ""

    @property
    def owner(self) -> Owner:
        mine = self.account
        return Owner(name=mine.name, uid=mine.uid, gid=mine.gid, groups=list(mine.groups))


def give_attempt(directory: Path, owner: Owner, top: str) -> None:
    """The account writes in the places of its instances. The directory around them, where the server keeps what it
    acts upon, can only be passed."""
    open_way(str(directory), top)
    directory.chmod(0o711)
    (directory / "attempt").chmod(0o644)
    for place in directory.glob("rank-*"):
        for path in (*place.iterdir(), place):
            os.chown(path, owner["uid"], owner["gid"])


def give_job(order: LaunchOrder, owner: Owner, top: str) -> None:
    """The job's own directories, with the way to them."""
    for path in job_directories(order):
        hand_over(path, owner)
        open_way(path, top)


def give_storage(specs: list[StorageSpec], owner: Owner, volumes: str, top: str) -> None:
    for spec in specs:
        let_in(spec, owner, volumes)
        if spec["kind"] in (StorageKind.DATASET, StorageKind.OBJECT):
            open_way(spec["source"], top)
