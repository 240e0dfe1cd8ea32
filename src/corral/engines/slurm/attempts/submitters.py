"""The submitter of an attempt's Slurm job, and its permissions on the server's own files."""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.ports import LaunchOrder, StorageKind
from corral.engines.attempts.accounts import Account
from corral.engines.attempts.environment import job_directories
from corral.engines.attempts.instance_messages import Owner, StorageSpec
from corral.engines.attempts.job_places import give_to, open_path
from corral.engines.storage.job_mounts import open_to_account


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitter:
    """An account of the machines, and the Slurm account that is charged; "" means its default."""

    account: Account
    slurm_account: str = ""

    @property
    def owner(self) -> Owner:
        mine = self.account
        return Owner(name=mine.name, uid=mine.uid, gid=mine.gid, groups=list(mine.groups))


def give_place(place: str, owner: Owner, top: str) -> None:
    """The account can write there, but not in the directories around it: files that the server relies on are
    elsewhere."""
    open_path(place, top)
    give_to([place], owner)


def give_job(order: LaunchOrder, owner: Owner, top: str) -> None:
    """Give the job's own directories to the account, and open the path to them."""
    own = job_directories(order)
    give_to(own, owner)
    for path in own:
        open_path(path, top)


def give_storage(specs: list[StorageSpec], owner: Owner, volumes: str, top: str) -> None:
    for spec in specs:
        open_to_account(spec, owner, volumes)
        if spec["kind"] in (StorageKind.DATASET, StorageKind.OBJECT):
            open_path(spec["source"], top)
