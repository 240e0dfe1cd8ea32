"""How a dataset target is reached, as plain data that can be sent to a process, and the clients made of that data.

This data contains secrets in clear text. It is sent to a process through its standard input, or to an engine in a
launch order; it is never written to a file that others can read, nor to a log.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from corral.control.live.unit_of_work import PLATFORM
from corral.control.ports import Store, Transaction
from corral.control.records import ByteStorage, DatasetRecord, DatasetTargetRecord, MetadataKind
from corral.datasets.history.git_versions import GitVersions
from corral.objects.access import NotReachable
from corral.server.auth.secret_box import SecretBox, SecretUnreadable
from corral.server.settings.settings import Settings
from corral.server.storage.mount_orders import access_to

log = logging.getLogger("corral.server.datasets")

#: Plain data that can be written as JSON.
Message = dict[str, Any]


def dataset_key(dataset: DatasetRecord) -> str:
    """The dataset's name in the history: OWNER/NAME. Neither part ever changes."""
    # The library wants a letter or a digit first; no user's name begins with a digit.
    owner = dataset.owner if dataset.owner[:1].isalnum() else f"0{dataset.owner}"
    return f"{owner}/{dataset.name}"


def storage_access(tx: Transaction, target: DatasetTargetRecord, settings: Settings, box: SecretBox) -> Message:
    """How the target's objects are reached. Raises NotReachable with a message for users."""
    if target.storage is ByteStorage.DIRECTORY:
        return {"kind": "directory", "path": target.path or str(settings.datasets_path)}
    store = tx.volumes.object_store(target.object_store)
    if store is None:
        raise NotReachable(f"target {target.name} has no object store {target.object_store!r} any more")
    try:
        return {"kind": "object", "access": access_to(store, target.prefix, box).to_dict()}
    except SecretUnreadable:
        raise NotReachable(
            f"the secret of object store {store.name} cannot be read any more: an operator has to give it again"
        ) from None


def git_access(target: DatasetTargetRecord, settings: Settings, box: SecretBox) -> Message | None:
    """How the target's Git repository is reached; None if its history is in the server's store. Raises NotReachable."""
    if target.metadata is not MetadataKind.GIT:
        return None
    try:
        token = box.decrypt(target.git_token) if target.git_token else ""
    except SecretUnreadable:
        raise NotReachable(
            f"the token of target {target.name} cannot be read any more: an operator has to give it again"
        ) from None
    clones = settings.home / "dataset-git" / target.name
    return {"url": target.git_url, "branch": target.git_branch, "token": token, "clones": str(clones)}


def open_git(access: Message) -> GitVersions:
    """Makes no connection yet."""
    Path(access["clones"]).mkdir(mode=0o700, parents=True, exist_ok=True)
    return GitVersions(
        access["url"], cache=Path(access["clones"]), branch=access["branch"], token=access["token"], user=PLATFORM
    )


def renewed_tokens(store: Store, box: SecretBox) -> dict[str, tuple[str, str]]:
    """Tokens that are encrypted with an older key, by target: as stored, and encrypted with the newest key."""
    with store.read() as tx:
        targets = tx.datasets.targets()
    found = {}
    for target in targets:
        try:
            if target.git_token and not box.is_current(target.git_token):
                found[target.name] = (target.git_token, box.encrypt(box.decrypt(target.git_token)))
        except SecretUnreadable as error:
            log.error("the token of dataset target %s cannot be read: %s", target.name, error)
    return found


def sent_packs_path(settings: Settings) -> Path:
    """The file that lists the packs that each user has sent."""
    return settings.home / "dataset-sent"


def index_cache(settings: Settings, target: str) -> Path:
    """The local cache of the target's index."""
    return settings.home / "dataset-index" / target
