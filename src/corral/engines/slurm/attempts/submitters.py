"""Whose job an attempt is in Slurm, and what that account must reach of the server's own files."""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.ports import LaunchOrder, StorageKind
from corral.engines.attempts.accounts import Account
from corral.engines.attempts.environment import job_directories
from corral.engines.attempts.instance_messages import Owner, StorageSpec
from corral.engines.attempts.job_places import hand_over, open_way
from corral.engines.storage.job_mounts import let_in


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitter:
    """An account of the machines, and the one of Slurm's books that pays; "" for its default."""

    account: Account
    books: str = ""

    @property
    def owner(self) -> Owner:
        mine = self.account
        return Owner(name=mine.name, uid=mine.uid, gid=mine.gid, groups=list(mine.groups))


def give_place(place: str, owner: Owner, top: str) -> None:
    """The account writes there, and nowhere around it: what the server acts upon is elsewhere."""
    open_way(place, top)
    hand_over([place], owner)


def give_job(order: LaunchOrder, owner: Owner, top: str) -> None:
    """The job's own directories, with the way to them."""
    own = job_directories(order)
    hand_over(own, owner)
    for path in own:
        open_way(path, top)


def give_storage(specs: list[StorageSpec], owner: Owner, volumes: str, top: str) -> None:
    for spec in specs:
        let_in(spec, owner, volumes)
        if spec["kind"] in (StorageKind.DATASET, StorageKind.OBJECT):
            open_way(spec["source"], top)
