"""How a target of datasets is reached: in words that a process can be told, and from words to the real thing.

Words hold secrets in clear. They go to a process through its input, or to an engine in an order; never into a file that
others can read, nor into a log.
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

Words = dict[str, Any]


def dataset_key(dataset: DatasetRecord) -> str:
    """What a dataset is called in the history: OWNER/NAME. Neither ever changes."""
    # The library wants a letter or a digit first; no user's name begins with a digit.
    owner = dataset.owner if dataset.owner[:1].isalnum() else f"0{dataset.owner}"
    return f"{owner}/{dataset.name}"


def storage_words(tx: Transaction, target: DatasetTargetRecord, settings: Settings, box: SecretBox) -> Words:
    """Where its bytes are. Raises NotReachable, in words for people."""
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


def metadata_words(target: DatasetTargetRecord, settings: Settings, box: SecretBox) -> Words | None:
    """How its repository is reached; None if its history is in corral's own store. Raises NotReachable."""
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


def open_git(words: Words) -> GitVersions:
    """Asks nobody yet."""
    Path(words["clones"]).mkdir(mode=0o700, parents=True, exist_ok=True)
    return GitVersions(
        words["url"], cache=Path(words["clones"]), branch=words["branch"], token=words["token"], user=PLATFORM
    )


def renewed_tokens(store: Store, box: SecretBox) -> dict[str, tuple[str, str]]:
    """Tokens that an older key has locked: by target, as they are, and under the newest key."""
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
    """Where is noted which packs each user has sent."""
    return settings.home / "dataset-sent"


def index_cache(settings: Settings, target: str) -> Path:
    """Where what is known of a storage is kept, so that it need not be fetched again."""
    return settings.home / "dataset-index" / target
