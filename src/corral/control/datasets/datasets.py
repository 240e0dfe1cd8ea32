"""Datasets: owners, shares, versions, tags, and the jobs that used and made them.

A version is added here when its bytes are stored in the storage of its target. `operations` and the server's dataset
workers store the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from corral.control.datasets import targets
from corral.control.errors import Forbidden, InUse, Invalid, NotFound, OverLimit, Taken, WrongState
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import permissions
from corral.control.people.user_inbox import note_shares
from corral.control.ports import Transaction
from corral.control.records import (
    LATEST,
    SHORT_LENGTH,
    DatasetRecord,
    DatasetUse,
    Function,
    Role,
    Share,
    ShareKind,
    TagRecord,
    VersionRecord,
)
from corral.control.storage.sharing import Circle, check_shares
from corral.core.counts import counted
from corral.core.names import DATASET_NAME, TAG_NAME

#: The fewest letters of an id that may stand for it.
LEAST_DIGITS = 4
_DIGITS = re.compile(r"[0-9a-f]{4,64}")
_DATASET_ID = re.compile(r"d-[0-9]+")
_IDENTITY = "datasets.identity"
MAX_DATASETS = 1000
MAX_TAGS = 500
MAX_DESCRIPTION = 1000
#: Jobs named in a refusal.
NAMED_JOBS = 5


# ------------------------------------------------------------------------------------------------ looking


def visible(tx: Transaction, caller: Caller) -> list[DatasetRecord]:
    """The caller's datasets and those that are shared with the caller; for operators all."""
    circle = Circle(tx, caller)
    return [dataset for dataset in tx.datasets.all() if circle.sees(dataset.owner, dataset.shares)]


def found(tx: Transaction, caller: Caller, ref: str) -> DatasetRecord:
    """Finds a dataset by id, by owner/name, or by name: the caller's own comes first, then the only visible one of that
    name.
    """
    circle = Circle(tx, caller)
    owner, slash, name = ref.partition("/")
    if _DATASET_ID.fullmatch(ref):
        named = [dataset for dataset in (tx.datasets.get(ref),) if dataset is not None]
    elif slash:
        named = [dataset for dataset in (tx.datasets.find(owner, name),) if dataset is not None]
    else:
        own = tx.datasets.find(caller.name, ref)
        named = [own] if own is not None else [dataset for dataset in tx.datasets.all() if dataset.name == ref]
    seen = [dataset for dataset in named if circle.sees(dataset.owner, dataset.shares)]
    if len(seen) > 1:
        names = sorted(f"{dataset.owner}/{dataset.name}" for dataset in seen)
        raise Invalid(f"{ref!r} may mean {', '.join(names[:5])}: name one of them", field="dataset")
    if not seen:
        raise NotFound(f"there is no dataset {ref!r}", field="dataset")
    return seen[0]


def writable(tx: Transaction, caller: Caller, ref: str) -> DatasetRecord:
    """Finds a dataset whose versions the caller may add to."""
    permissions.require(caller, Function.DATASETS)
    dataset = found(tx, caller, ref)
    if not Circle(tx, caller).writes(dataset.owner, dataset.shares):
        raise Forbidden(f"dataset {dataset.owner}/{dataset.name} is shared with you to read: ask its owner for more")
    return dataset


def version_meant(tx: Transaction, dataset: DatasetRecord, ref: str) -> VersionRecord:
    """The version that a tag, the beginning of an id, or `latest` means now."""
    if not dataset.versions:
        raise Invalid(f"dataset {dataset.name} has no version yet: corral dataset commit", field="version")
    if ref == LATEST:
        assert dataset.head is not None
        return _version(tx, dataset, dataset.head)
    for tag in tx.datasets.tags([dataset.id]):
        if tag.tag == ref:
            return _version(tx, dataset, tag.version)
    alike = tx.datasets.versions_like(dataset.id, ref, 2) if _DIGITS.fullmatch(ref) else []
    if len(alike) > 1:
        raise Invalid(f"several versions of {dataset.name} begin with {ref!r}: give more digits", field="version")
    if not alike:
        raise NotFound(
            f"dataset {dataset.name} has no version {ref[:80]!r}: give a tag, the first digits of an id "
            f"(at least {LEAST_DIGITS}), or {LATEST}",
            field="version",
        )
    return alike[0]


def mountable(tx: Transaction, user: str, dataset_id: str, version: str) -> tuple[DatasetRecord, VersionRecord]:
    """A version that a user's job mounts, if the user may still have it."""
    record = tx.people.user(user)
    caller = Caller(name=user, is_operator=record is not None and record.role is Role.OPERATOR)
    dataset = found(tx, caller, dataset_id)
    found_version = tx.datasets.version(dataset.id, version)
    if found_version is None:
        raise NotFound(f"dataset {dataset.name} has no version {version[:SHORT_LENGTH]} any more", field="version")
    return dataset, found_version


def _version(tx: Transaction, dataset: DatasetRecord, version: str) -> VersionRecord:
    record = tx.datasets.version(dataset.id, version)
    assert record is not None, f"{dataset.id} has no version {version}"
    return record


# ------------------------------------------------------------------------------------------------ changing


def create(work: Work, caller: Caller, *, name: str, target: str, description: str) -> DatasetRecord:
    permissions.require(caller, Function.DATASETS)
    if not DATASET_NAME.fullmatch(name):
        raise Invalid(
            f"the name {name[:80]!r} is not allowed: 2 to 63 letters, digits, '-' and '_', a letter or digit first",
            field="name",
        )
    if _DATASET_ID.fullmatch(name):
        raise Invalid(f"{name!r} looks like an id: choose another name", field="name")
    targets.existing(work.tx, target)
    held = [other for other in work.tx.datasets.all() if other.owner == caller.name]
    if any(other.name == name for other in held):
        raise Taken(f"you have a dataset {name!r} already", field="name", name=name)
    if len(held) >= MAX_DATASETS:
        raise OverLimit(
            f"you have {counted(len(held), 'dataset')} already", field="name", held=len(held), limit=MAX_DATASETS
        )
    made = DatasetRecord(
        id=work.tx.datasets.next_id(),
        name=name,
        owner=caller.name,
        target=target,
        description=description,
        created_at=work.now,
    )
    work.tx.datasets.save(made)
    work.record(caller, "dataset.created", made.id, owner=made.owner, detail={"name": name, "target": target})
    return made


def edit(work: Work, caller: Caller, ref: str, *, description: str) -> DatasetRecord:
    before = _own(work.tx, caller, ref)
    after = replace(before, description=description)
    if after != before:
        work.tx.datasets.save(after)
        work.record(caller, "dataset.edited", after.id, owner=after.owner, detail={"name": after.name})
    return after


def share(work: Work, caller: Caller, ref: str, shares: Sequence[Share]) -> DatasetRecord:
    """Share the dataset with exactly these users and groups. Write access means to commit and to tag."""
    before = _own(work.tx, caller, ref)
    after = replace(before, shares=check_shares(work.tx, shares))
    if after != before:
        work.tx.datasets.save(after)
        shares_text = [f"{share.kind.value} {share.name} {share.mode.value}" for share in after.shares]
        work.record(
            caller, "dataset.shared", after.id, owner=after.owner, detail={"name": after.name, "shares": shares_text}
        )
        note_shares(work, caller, "dataset", after.id, after.name, before.shares, after.shares)
    return after


def delete(work: Work, caller: Caller, ref: str) -> DatasetRecord:
    """Deletes a dataset and its versions; the next collection removes the bytes that no other version needs."""
    dataset = _own(work.tx, caller, ref)
    jobs = mounting_jobs(work, dataset.id)
    if jobs:
        named = ", ".join(jobs[:NAMED_JOBS])
        raise InUse(
            f"{counted(len(jobs), 'job mounts', 'jobs mount')} dataset {dataset.name}: {named}",
            field="dataset",
            jobs=jobs[:20],
            held=len(jobs),
        )
    working = [
        operation.id for operation in work.tx.datasets.unfinished_operations() if operation.dataset == dataset.id
    ]
    if working:
        raise InUse(f"dataset {dataset.name} is being worked on: {', '.join(working[:5])}", field="dataset")
    work.tx.datasets.delete(dataset.id)
    detail = {"name": dataset.name, "target": dataset.target, "versions": dataset.versions}
    work.record(caller, "dataset.deleted", dataset.id, owner=dataset.owner, detail=detail)
    return dataset


def mounting_jobs(work: Work, dataset_id: str) -> list[str]:
    """Jobs that wait with it or hold resources, as they are after this work so far."""
    # Jobs that this very work has made are not in the store yet, but among the specs that are kept.
    known = {
        job_id
        for job_id, spec in work.state.specs.items()
        if any(mount.dataset_id == dataset_id for mount in spec.mounts)
    }
    candidates = sorted(known | set(work.tx.datasets.mounted_by(dataset_id)), key=lambda job_id: int(job_id[2:]))
    return [job_id for job_id in candidates if job_id in work.state.snapshot.jobs]


def check_user_free(tx: Transaction, user: str) -> None:
    """Refuse to delete a user who owns datasets: other users may need them."""
    held = [dataset.name for dataset in tx.datasets.all() if dataset.owner == user]
    if held:
        raise InUse(
            f"user {user} has {counted(len(held), 'dataset')}: {', '.join(held[:5])}", field="name", datasets=held[:20]
        )


def forget(work: Work, kind: ShareKind, name: str) -> None:
    """Ends all shares with a deleted user or group: a later one of that name must not inherit them."""
    for dataset in work.tx.datasets.all():
        left = tuple(share for share in dataset.shares if (share.kind, share.name) != (kind, name))
        if left != dataset.shares:
            work.tx.datasets.save(replace(dataset, shares=left))


def tag(work: Work, caller: Caller, ref: str, name: str, version: str) -> TagRecord:
    """Sets a tag to a version; an existing tag is moved."""
    dataset = writable(work.tx, caller, ref)
    check_tag(name)
    meant = version_meant(work.tx, dataset, version)
    known = {record.tag: record.version for record in work.tx.datasets.tags([dataset.id])}
    if name not in known and len(known) >= MAX_TAGS:
        raise OverLimit(f"dataset {dataset.name} has {len(known)} tags already", held=len(known), limit=MAX_TAGS)
    record = TagRecord(dataset=dataset.id, tag=name, version=meant.id)
    if known.get(name) != meant.id:
        work.tx.datasets.save_tag(record)
        detail = {"name": dataset.name, "tag": name, "version": meant.id, "before": known.get(name)}
        work.record(caller, "dataset.tagged", dataset.id, owner=dataset.owner, detail=detail)
    return record


def check_tag(name: str) -> None:
    if not TAG_NAME.fullmatch(name) or name.endswith(".lock") or ".." in name or name.endswith("."):
        raise Invalid(f"the tag {name[:80]!r} is not allowed: up to 63 letters, digits, '.', '_' and '-'", field="tag")
    if name == LATEST:
        raise Invalid(f"{LATEST} always means the newest version: choose another tag", field="tag")
    if len(name) >= SHORT_LENGTH and _DIGITS.fullmatch(name):
        raise Invalid(f"{name!r} looks like a version's id: choose another tag", field="tag")


def untag(work: Work, caller: Caller, ref: str, name: str) -> DatasetRecord:
    dataset = writable(work.tx, caller, ref)
    if all(record.tag != name for record in work.tx.datasets.tags([dataset.id])):
        raise NotFound(f"dataset {dataset.name} has no tag {name[:80]!r}", field="tag")
    work.tx.datasets.delete_tag(dataset.id, name)
    work.record(caller, "dataset.untagged", dataset.id, owner=dataset.owner, detail={"name": dataset.name, "tag": name})
    return dataset


def append(work: Work, caller: Caller, dataset: DatasetRecord, versions: Sequence[VersionRecord]) -> DatasetRecord:
    """Put versions behind the newest one, oldest first. Refused if another one has become the newest meanwhile."""
    head, number = dataset.head, dataset.versions
    placed = []
    for version in versions:
        if version.parent != head:
            raise WrongState(
                f"dataset {dataset.name} has gone on to {_short(head)} meanwhile: commit again", field="parent"
            )
        number += 1
        placed.append(replace(version, dataset=dataset.id, number=number))
        head = version.id
    after = replace(
        dataset,
        head=head,
        versions=number,
        size_bytes=dataset.size_bytes + sum(version.new_bytes for version in placed),
    )
    work.tx.datasets.add_versions(placed)
    work.tx.datasets.save(after)
    for version in placed:
        detail = {"name": dataset.name, "version": version.id, "message": version.message[:200], "files": version.files}
        work.record(caller, "dataset.committed", dataset.id, owner=dataset.owner, detail=detail)
    return after


def _own(tx: Transaction, caller: Caller, ref: str) -> DatasetRecord:
    permissions.require(caller, Function.DATASETS)
    dataset = found(tx, caller, ref)
    if dataset.owner != caller.name and not caller.is_operator:
        raise Forbidden(f"dataset {dataset.owner}/{dataset.name} is not yours: only its owner changes it")
    return dataset


def _short(version: str | None) -> str:
    return "nothing" if version is None else version[:SHORT_LENGTH]


def identity_of(tx: Transaction, target: str) -> str:
    """The identity of this store's history. A storage belongs to one history."""
    return f"corral:{tx.meta.get(_IDENTITY) or 'unnamed'}:{target}"


def name_store(work: Work, name: str) -> None:
    """Give this store a name that no other one has, once."""
    if work.tx.meta.get(_IDENTITY) is None:
        work.tx.meta.put(_IDENTITY, name)


# ------------------------------------------------------------------------------------------------ lineage


@dataclass(frozen=True, kw_only=True, slots=True)
class UsedBy:
    """A job that used a version, with the attempts that did."""

    job_id: str
    job_name: str
    user: str
    attempts: tuple[int, ...]
    last_at: float


#: Uses that are looked at for one answer.
MOST_USES = 5000


def used_by(uses: Sequence[DatasetUse]) -> dict[str, list[UsedBy]]:
    """The jobs that used each version; the job that used it last comes first."""
    by_version: dict[str, dict[str, list[DatasetUse]]] = {}
    for use in uses:
        by_version.setdefault(use.version, {}).setdefault(use.job_id, []).append(use)
    return {version: [_summed(of_job) for of_job in jobs.values()] for version, jobs in by_version.items()}


def _summed(uses: Sequence[DatasetUse]) -> UsedBy:
    last = max(uses, key=lambda use: use.at)
    attempts = tuple(sorted(use.attempt for use in uses))
    return UsedBy(job_id=last.job_id, job_name=last.job_name, user=last.user, attempts=attempts, last_at=last.at)
