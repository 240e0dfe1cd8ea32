"""Long operations on datasets (commit, verify, pull, collect): requested here, executed by a worker process, and
recorded here when the worker process is done.

An operation is `waiting`, then `working`, then `ready` or `failed`. If the server stops during an operation, the
operation is started again at the next start: every step of the worker process is idempotent. The version that a commit
made is recorded in the transaction that ends the operation, so that neither exists without the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from corral.control.datasets import datasets, targets
from corral.control.datasets.output_commits import parse_commit
from corral.control.errors import NotFound, OverLimit, Refusal, WrongState
from corral.control.jobs.jobs import own_job
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import (
    DatasetRecord,
    MetadataKind,
    OperationKind,
    OperationRecord,
    OperationState,
    TagRecord,
    VersionRecord,
)
from corral.core.model import Job

#: Operations that may wait at a time, and how many that are over are kept.
MOST_WAITING = 100
KEPT = 500
#: How often one is begun again after the server or its process died over it.
MOST_STARTS = 5
MAX_ERROR = 1000


# ------------------------------------------------------------------------------------------------ asking


def request_commit(
    work: Work,
    caller: Caller,
    ref: str,
    *,
    source: Mapping[str, Any],
    message: str,
    parent: str | None,
    produced_by: str | None,
) -> OperationRecord:
    """`source` says what is read; whether the caller may read it was asked before."""
    dataset = datasets.writable(work.tx, caller, ref)
    maker = None if produced_by is None else own_job(work, caller, produced_by).id
    if parent is not None:
        before = datasets.version_meant(work.tx, dataset, parent)
        if before.id != dataset.head:
            raise WrongState(
                f"{parent} is not the newest version of {dataset.name} any more: look at what came since",
                field="parent",
            )
        parent = before.id
    order = {"source": dict(source), "message": message, "author": caller.name, "job": maker, "parent": parent}
    return _request(work, caller, OperationKind.COMMIT, dataset.target, dataset, order)


def commit_outputs(work: Work, job: Job, text: str) -> None:
    """A completed job commits its outputs, in the name of its owner. What is refused now was allowed at submission: the
    refusal is recorded, and the outputs can be committed by hand."""
    meant, owner = parse_commit(text), Caller(name=job.user)
    source = {"kind": "job", "job": job.id, "path": meant.path}
    message = f"{meant.path or 'outputs'} of {job.name} ({job.id})"
    try:
        request_commit(work, owner, meant.dataset, source=source, message=message, parent=None, produced_by=job.id)
    except Refusal as refusal:
        detail = {"dataset": meant.dataset, "message": refusal.detail}
        work.record(SYSTEM, "job.outputs-not-committed", job.id, owner=job.user, detail=detail)


def commits_of_job(tx: Transaction, job_id: str) -> list[OperationRecord]:
    """The newest first, as far as they are kept."""
    kept = tx.datasets.operations(target=None, dataset=None, cursor=None, limit=KEPT).items
    return [
        operation
        for operation in kept
        if operation.kind is OperationKind.COMMIT and operation.order.get("job") == job_id
    ]


def request_verify(work: Work, caller: Caller, ref: str, version: str) -> OperationRecord:
    """Everybody who reads a version may have it checked."""
    dataset = datasets.found(work.tx, caller, ref)
    meant = datasets.version_meant(work.tx, dataset, version)
    return _request(work, caller, OperationKind.VERIFY, dataset.target, dataset, {"version": meant.id})


def request_pull(work: Work, caller: Caller, ref: str) -> OperationRecord:
    """Import versions that others have pushed to the dataset's Git repository."""
    dataset = datasets.writable(work.tx, caller, ref)
    if targets.existing(work.tx, dataset.target).metadata is not MetadataKind.GIT:
        raise WrongState(f"dataset {dataset.name} is not kept in Git: there is nothing to pull", field="dataset")
    return _request(work, caller, OperationKind.PULL, dataset.target, dataset, {})


def request_collect(work: Work, caller: Caller, target: str, *, dry_run: bool, grace_seconds: float) -> OperationRecord:
    require_operator(caller, "collect what no version needs")
    found = targets.existing(work.tx, target)
    order = {"dry_run": dry_run, "grace_seconds": grace_seconds}
    return _request(work, caller, OperationKind.COLLECT, found.name, None, order)


def _request(
    work: Work,
    caller: Caller,
    kind: OperationKind,
    target: str,
    dataset: DatasetRecord | None,
    order: Mapping[str, Any],
) -> OperationRecord:
    unfinished = work.tx.datasets.unfinished_operations()
    if len(unfinished) >= MOST_WAITING:
        raise OverLimit(f"{len(unfinished)} operations wait already: try again later", limit=MOST_WAITING)
    record = OperationRecord(
        id=work.tx.datasets.next_operation_id(),
        kind=kind,
        target=target,
        dataset=None if dataset is None else dataset.id,
        order=order,
        created_by=caller.name,
        created_at=work.now,
    )
    work.tx.datasets.save_operation(record)
    work.record(
        caller, f"dataset.{kind.value}-requested", _subject(record), owner=_owner(dataset), detail=_detail(record)
    )
    return record


# ------------------------------------------------------------------------------------------------ looking


def existing(
    tx: Transaction, operation_id: str, kind: OperationKind, *, dataset: str | None, target: str
) -> OperationRecord:
    """An existing operation of this kind on this dataset or target."""
    record = tx.datasets.operation(operation_id)
    if record is None or (record.kind, record.dataset, record.target) != (kind, dataset, target):
        raise NotFound(f"there is no {kind.value} {operation_id!r}", field="errand")
    return record


# ------------------------------------------------------------------------------------------------ while it is done


def begin(work: Work, operation_id: str) -> OperationRecord | None:
    """Marks an operation as working. None if it is over, or was started too often."""
    record = work.tx.datasets.operation(operation_id)
    if record is None or record.state.is_over:
        return None
    if record.starts >= MOST_STARTS:
        fail(work, operation_id, f"it was begun {record.starts} times, and each time its process or the server died")
        return None
    begun = replace(record, state=OperationState.WORKING, started_at=work.now, starts=record.starts + 1)
    work.tx.datasets.save_operation(begun)
    return begun


def record_commit(work: Work, operation_id: str, version: VersionRecord) -> None:
    """Add the version whose bytes are stored, and end its operation. Refused if another version was added first."""
    operation = _working(work.tx, operation_id)
    dataset = _dataset(work.tx, operation)
    if work.tx.datasets.version(dataset.id, version.id) is None:
        author = Caller(name=operation.created_by)
        datasets.append(work, author, dataset, [version])
    _end(work, operation, OperationState.READY, result=_commit_result(version, is_new=True))


def finish_commit(work: Work, operation_id: str, version: VersionRecord) -> None:
    """Ends a commit that made no new version: nothing differs from this one, or an earlier try made it."""
    operation = work.tx.datasets.operation(operation_id)
    if operation is not None and not operation.state.is_over:
        _end(work, operation, OperationState.READY, result=_commit_result(version, is_new=False))


def take_over(work: Work, operation_id: str, versions: Sequence[VersionRecord], tags: Mapping[str, str]) -> int:
    """Records the versions of the dataset's Git repository, oldest first; returns how many were new. Refused if the
    repository lacks a version that is known here: versions never change.

    Refused if the repository does not hold what is known here any more: versions never change.
    """
    dataset = _dataset(work.tx, _working(work.tx, operation_id))
    ids = [version.id for version in versions]
    if dataset.head is not None and dataset.head not in ids:
        raise WrongState(
            f"the repository does not have version {dataset.head[:12]} of {dataset.name} any more: its history was "
            "rewritten",
            field="dataset",
        )
    new = versions[ids.index(dataset.head) + 1 :] if dataset.head is not None else versions
    if new:
        datasets.append(work, SYSTEM, dataset, new)
    known = {tag.tag: tag.version for tag in work.tx.datasets.tags([dataset.id])}
    for tag, version in tags.items():
        if version in ids and known.get(tag) != version:
            work.tx.datasets.save_tag(TagRecord(dataset=dataset.id, tag=tag, version=version))
    for tag in known.keys() - tags.keys():
        work.tx.datasets.delete_tag(dataset.id, tag)
    return len(new)


def finish(work: Work, operation_id: str, result: Mapping[str, Any]) -> None:
    record = work.tx.datasets.operation(operation_id)
    if record is not None and not record.state.is_over:
        _end(work, record, OperationState.READY, result=result)


def fail(work: Work, operation_id: str, error: str) -> None:
    record = work.tx.datasets.operation(operation_id)
    if record is not None and not record.state.is_over:
        _end(work, record, OperationState.FAILED, error=error[:MAX_ERROR])


def drop_old(work: Work) -> None:
    """Delete all but the newest ended operations."""
    work.tx.datasets.keep_operations(KEPT)


def _end(
    work: Work,
    record: OperationRecord,
    state: OperationState,
    *,
    result: Mapping[str, Any] | None = None,
    error: str = "",
) -> None:
    ended = replace(record, state=state, ended_at=work.now, result=result, error=error)
    work.tx.datasets.save_operation(ended)
    dataset = None if record.dataset is None else work.tx.datasets.get(record.dataset)
    detail = {**_detail(record), "error": error} if error else _detail(record)
    action = f"dataset.{record.kind.value}-{state.value}"
    work.record(SYSTEM, action, _subject(record), owner=_owner(dataset), detail=detail)


def _working(tx: Transaction, operation_id: str) -> OperationRecord:
    record = tx.datasets.operation(operation_id)
    if record is None or record.state is not OperationState.WORKING:
        raise WrongState(f"operation {operation_id} is not wanted any more", field="errand")
    return record


def _dataset(tx: Transaction, operation: OperationRecord) -> DatasetRecord:
    found = None if operation.dataset is None else tx.datasets.get(operation.dataset)
    if found is None:
        raise NotFound(f"the dataset of {operation.id} is gone", field="dataset")
    return found


def _commit_result(version: VersionRecord, *, is_new: bool) -> dict[str, Any]:
    return {
        "version": version.id,
        "created": is_new,
        "files": version.files,
        "bytes": version.bytes,
        "new_bytes": version.new_bytes,
    }


def _subject(record: OperationRecord) -> str:
    return record.dataset or record.target


def _owner(dataset: DatasetRecord | None) -> str:
    return "" if dataset is None else dataset.owner


def _detail(record: OperationRecord) -> dict[str, Any]:
    return {"errand": record.id, "target": record.target}
