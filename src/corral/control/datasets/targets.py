"""Targets of datasets: each has a place for the history and a place for the bytes. Operators create them.

`default` is always there: corral's own store, and a directory that the server's settings name. Tokens arrive here
encrypted and leave so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from corral.control.errors import InUse, Invalid, NotFound, OverLimit, Taken, WrongState
from corral.control.live.unit_of_work import PLATFORM, SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import DEFAULT_TARGET, ByteStorage, DatasetTargetRecord, MetadataKind
from corral.control.storage import object_stores
from corral.core.counts import counted
from corral.core.names import IMAGE_NAME

MAX_TARGETS = 100
BUILT_IN = DatasetTargetRecord(name=DEFAULT_TARGET)
#: May change while there are datasets. Not the address: a storage belongs to one repository, for good.
_ALWAYS = frozenset({"git_token"})
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")
_SCP_ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s:-]\S*")
_PREFIX = re.compile(r"(?:[A-Za-z0-9._=-]+(?:/[A-Za-z0-9._=-]+)*)?")


def all_targets(tx: Transaction) -> list[DatasetTargetRecord]:
    return [BUILT_IN, *tx.datasets.targets()]


def existing(tx: Transaction, name: str) -> DatasetTargetRecord:
    for target in all_targets(tx):
        if target.name == name:
            return target
    raise NotFound(f"there is no dataset target {name!r}", field="target")


def dataset_counts(tx: Transaction) -> dict[str, int]:
    """How many datasets are kept through each target."""
    counts: dict[str, int] = {}
    for dataset in tx.datasets.all():
        counts[dataset.target] = counts.get(dataset.target, 0) + 1
    return counts


def create(work: Work, caller: Caller, target: DatasetTargetRecord) -> DatasetTargetRecord:
    require_operator(caller, "manage dataset targets")
    if not IMAGE_NAME.fullmatch(target.name):
        raise Invalid(
            f"the name {target.name!r} is not allowed: up to 63 small letters, digits, '.', '_' and '-'", field="name"
        )
    known = all_targets(work.tx)
    if any(other.name == target.name for other in known):
        raise Taken(f"there is a dataset target {target.name!r} already", field="name", name=target.name)
    if len(known) >= MAX_TARGETS:
        raise OverLimit(f"there are {len(known)} targets already: delete one first", held=len(known), limit=MAX_TARGETS)
    _check_bucket(work.tx, target)
    made = replace(_checked(target), created_by=caller.name, created_at=work.now)
    work.tx.datasets.save_target(made)
    work.record(caller, "dataset-target.created", made.name, detail=_detail(made))
    return made


def edit(work: Work, caller: Caller, name: str, changes: Mapping[str, Any]) -> DatasetTargetRecord:
    require_operator(caller, "manage dataset targets")
    before = existing(work.tx, name)
    _refuse_built_in(before)
    after = _checked(replace(before, **changes))
    if "object_store" in changes:
        _check_bucket(work.tx, after)
    moved = sorted(
        field for field, value in changes.items() if getattr(before, field) != value and field not in _ALWAYS
    )
    if moved:
        _refuse_in_use(work.tx, name, f"its {moved[0].replace('_', ' ')} cannot change")
    if after != before:
        work.tx.datasets.save_target(after)
        work.record(caller, "dataset-target.edited", name, detail=_detail(after))
    return after


def delete(work: Work, caller: Caller, name: str) -> None:
    """The bytes stay where they are."""
    require_operator(caller, "manage dataset targets")
    target = existing(work.tx, name)
    _refuse_built_in(target)
    _refuse_in_use(work.tx, name, "it cannot be deleted")
    work.tx.datasets.delete_target(name)
    work.record(caller, "dataset-target.deleted", name, detail=_detail(target))


def renew_tokens(work: Work, renewed: Mapping[str, tuple[str, str]]) -> None:
    """The same tokens under a newer key: by target, as they were and as they are now."""
    for target in work.tx.datasets.targets():
        before, after = renewed.get(target.name, ("", ""))
        # An operator may have replaced the secret meanwhile.
        if after and target.git_token == before:
            work.tx.datasets.save_target(replace(target, git_token=after))
    work.record(SYSTEM, "dataset-target.tokens-renewed", PLATFORM, detail={"tokens": len(renewed)})


def _checked(target: DatasetTargetRecord) -> DatasetTargetRecord:
    if target.metadata is MetadataKind.GIT:
        check_git_url(target.git_url)
        if not _BRANCH.fullmatch(target.git_branch) or ".." in target.git_branch:
            raise Invalid(f"{target.git_branch!r} is not a branch's name", field="metadata.branch")
    if target.storage is ByteStorage.DIRECTORY:
        return replace(target, path=_directory(target.path))
    if not _PREFIX.fullmatch(target.prefix) or ".." in target.prefix.split("/"):
        raise Invalid("a prefix has names with / in between, and none at its ends", field="storage.prefix")
    return target


def _check_bucket(tx: Transaction, target: DatasetTargetRecord) -> None:
    if target.storage is not ByteStorage.OBJECT:
        return
    if not object_stores.existing(tx, target.object_store, field="storage.object_store").allow_write:
        raise Invalid(
            f"object store {target.object_store} does not allow writing: an operator has to open it",
            field="storage.object_store",
        )


def check_git_url(url: str) -> None:
    """Refused if git would take it for anything but an address, or if it holds a login."""
    parts = urlsplit(url)
    if parts.password is not None or (parts.username is not None and parts.scheme in ("http", "https")):
        raise Invalid("the address holds a login: give the token apart, it is kept encrypted", field="metadata.url")
    is_address = (parts.scheme in ("http", "https", "ssh") and parts.hostname and len(parts.path) > 1) or (
        parts.scheme == "file" and not parts.netloc and len(parts.path) > 1
    )
    is_known = is_address or _SCP_ADDRESS.fullmatch(url) is not None
    if len(url) > 1000 or not is_known or not url.isprintable() or " " in url:
        raise Invalid(
            f"{url[:80]!r} is not a repository's address, such as https://git.example.org/team/sets.git, "
            "git@git.example.org:team/sets.git or file:///srv/sets.git",
            field="metadata.url",
        )


def _directory(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/") or PurePosixPath(path) == PurePosixPath("/"):
        raise Invalid(f"{path[:80]!r} is not a directory's whole path, such as /srv/datasets", field="storage.path")
    return str(PurePosixPath("/" + path.lstrip("/")))


def _refuse_built_in(target: DatasetTargetRecord) -> None:
    if target.name == DEFAULT_TARGET:
        raise WrongState("the target default is built in: the server's settings say where it is", field="target")


def _refuse_in_use(tx: Transaction, name: str, problem: str) -> None:
    kept = [f"{dataset.owner}/{dataset.name}" for dataset in tx.datasets.all() if dataset.target == name]
    if kept:
        raise InUse(
            f"target {name} keeps {counted(len(kept), 'dataset')} ({', '.join(kept[:5])}): {problem}",
            field="target",
            datasets=kept[:20],
        )


def _detail(target: DatasetTargetRecord) -> dict[str, Any]:
    return {"metadata": target.metadata.value, "storage": target.storage.value, "git_url": target.git_url}
