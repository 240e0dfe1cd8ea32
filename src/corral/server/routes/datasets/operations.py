"""Long operations on datasets: commits, verifications, pulls from Git and garbage collections."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path

from corral.control.datasets import datasets, operations, targets
from corral.control.errors import Invalid, NotFound
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import OperationKind, OperationRecord, VolumeState
from corral.control.storage import volumes
from corral.core.storage.volumes import VolumeType
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.files import parts_of
from corral.server.routes.jobs.jobs import own_record
from corral.server.schemas.base import ListView
from corral.server.schemas.datasets.dataset_files import CollectionCreate, CommitCreate
from corral.server.schemas.datasets.datasets import CommitSource, OperationView, operation_view

router = resource_router("/datasets", "datasets")
target_router = resource_router("/dataset-targets", "datasets")

#: Clients know the path parameter by this name.
OperationId = Annotated[str, Path(alias="operation")]


@router.get("/{dataset}/commits", operation_id="list_dataset_commits", responses=problems(404))
async def list_dataset_commits(
    dataset: str, caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[OperationView]:
    """All operations on a dataset, the newest first: commits, verifications and pulls."""
    found = await context.read(datasets.found, caller, dataset)
    return await _listed(context, found.target, found.id, cursor, limit)


@router.post("/{dataset}/commits", status_code=202, operation_id="commit_dataset", responses=problems(403, 404, 409))
async def commit_dataset(dataset: str, body: CommitCreate, caller: AnyCaller, context: Context) -> OperationView:
    """Make a new version: of a directory that the server reads, or of objects that were sent before. The operation is
    `waiting`, then `working`, until it is `ready` and has a version, or `failed`."""
    source, maker = await context.read(_source, caller, body)
    operation = await context.execute(
        operations.request_commit,
        caller,
        dataset,
        source=source,
        message=body.message,
        parent=body.parent,
        produced_by=body.produced_by or maker,
    )
    return _begun(context, operation)


@router.get("/{dataset}/commits/{operation}", operation_id="get_dataset_commit", responses=problems(404))
async def get_dataset_commit(
    dataset: str, operation: OperationId, caller: AnyCaller, context: Context
) -> OperationView:
    """The progress of a commit, a verification or a pull, and its result."""

    def read(tx: Transaction) -> OperationRecord:
        found = datasets.found(tx, caller, dataset)
        record = tx.datasets.operation(operation)
        if record is None or record.dataset != found.id:
            raise NotFound(f"dataset {found.name} has no operation {operation!r}", field="operation")
        return record

    return _view(context, await context.read(read))


@router.post(
    "/{dataset}/versions/{version}/verify",
    status_code=202,
    operation_id="verify_dataset_version",
    responses=problems(404, 409),
)
async def verify_dataset_version(dataset: str, version: str, caller: AnyCaller, context: Context) -> OperationView:
    """Read everything of a version and compare it with its ids."""
    return _begun(context, await context.execute(operations.request_verify, caller, dataset, version))


@router.post("/{dataset}/pull", status_code=202, operation_id="pull_dataset", responses=problems(403, 404, 409))
async def pull_dataset(dataset: str, caller: AnyCaller, context: Context) -> OperationView:
    """Copy versions and tags that others have pushed to the dataset's Git repository."""
    return _begun(context, await context.execute(operations.request_pull, caller, dataset))


@target_router.get("/{target}/collections", operation_id="list_dataset_collections", responses=problems(403, 404))
async def list_dataset_collections(
    target: str, caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[OperationView]:
    """All operations on a target and its datasets, the newest first."""
    found = await context.read(targets.existing, target)
    return await _listed(context, found.name, None, cursor, limit)


@target_router.post(
    "/{target}/collections", status_code=202, operation_id="collect_dataset_garbage", responses=problems(403, 404, 409)
)
async def collect_dataset_garbage(
    target: str, body: CollectionCreate, caller: Operator, context: Context
) -> OperationView:
    """Find objects that no version needs; unless it is a dry run, remove them. Safe while others commit."""
    operation = await context.execute(
        operations.request_collect, caller, target, dry_run=body.dry_run, grace_seconds=body.grace_seconds
    )
    return _begun(context, operation)


@target_router.get(
    "/{target}/collections/{operation}", operation_id="get_dataset_collection", responses=problems(403, 404)
)
async def get_dataset_collection(
    target: str, operation: OperationId, caller: Operator, context: Context
) -> OperationView:
    """One garbage collection of a target: its state and what it has removed."""

    def read(tx: Transaction) -> OperationRecord:
        found = targets.existing(tx, target)
        return operations.existing(tx, operation, OperationKind.COLLECT, dataset=None, target=found.name)

    return _view(context, await context.read(read))


async def _listed(
    context: ServerContext, target: str, dataset: str | None, cursor: str | None, limit: int
) -> ListView[OperationView]:
    try:
        page = await context.read(
            lambda tx: tx.datasets.operations(target=target, dataset=dataset, cursor=cursor, limit=limit)
        )
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    return ListView(items=[_view(context, item) for item in page.items], next_cursor=page.next_cursor)


def _begun(context: ServerContext, operation: OperationRecord) -> OperationView:
    context.operation_runner.wake()
    return operation_view(operation)


def _view(context: ServerContext, operation: OperationRecord) -> OperationView:
    return operation_view(
        operation, None if operation.state.is_over else context.operation_runner.progress(operation.id)
    )


def _source(tx: Transaction, caller: Caller, body: CommitCreate) -> tuple[dict[str, Any], str | None]:
    """The source by ids, if the caller may read it; and the job that it comes from."""
    if body.source is None:
        return {"kind": "tree", "tree": body.tree}, None
    path = "/".join(parts_of(body.source.path))
    if body.source.job is not None:
        job = own_record(tx, caller, body.source.job).job
        return {"kind": "job", "job": job.id, "path": path}, job.id
    return {"kind": "volume", "volume": _volume(tx, caller, body.source), "path": path}, None


def _volume(tx: Transaction, caller: Caller, source: CommitSource) -> str:
    assert source.volume is not None
    volume = volumes.find_volume(tx, caller, source.volume)
    if volume.type is VolumeType.OBJECT:
        raise Invalid(
            f"volume {volume.name} is a bucket: copy what you want to commit with corral cp, or commit it from a job",
            field="from",
        )
    if volume.state is not VolumeState.READY:
        raise Invalid(f"volume {volume.name} is {volume.state.value}", field="from", state=volume.state.value)
    return volume.id
