"""Targets, which datasets are stored in. All users see which targets exist; operators manage them."""

from __future__ import annotations

import asyncio

from fastapi import Response

from corral.control.datasets import targets
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import DatasetTargetRecord
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.datasets.dataset_targets import (
    DatasetTargetCreate,
    DatasetTargetEdit,
    DatasetTargetView,
    GitMetadataBody,
    TargetTestView,
    target_changes,
    target_record,
    target_view,
)

router = resource_router("/dataset-targets", "datasets")

#: How long a request waits for the test of a target.
TEST_SECONDS = 60.0


@router.get("", operation_id="list_dataset_targets", responses=problems())
async def list_dataset_targets(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[DatasetTargetView]:
    """The places where datasets are stored; secrets are never shown."""
    views = await context.read(_views, context, caller)
    return page_of(views, key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("", status_code=201, operation_id="create_dataset_target", responses=problems(403, 409, 503))
async def create_dataset_target(body: DatasetTargetCreate, caller: Operator, context: Context) -> DatasetTargetView:
    """Create a place for datasets: a directory or bucket for the files, corral's store or a Git repository for the
    history."""
    token = body.metadata.token if isinstance(body.metadata, GitMetadataBody) else ""
    record = target_record(body, _locked(context, token))
    made = await context.execute(targets.create, caller, record)
    return _view(context, made, 0, caller)


@router.get("/{target}", operation_id="get_dataset_target", responses=problems(404))
async def get_dataset_target(target: str, caller: AnyCaller, context: Context) -> DatasetTargetView:
    """One place for datasets, without its secrets."""
    return await context.read(_shown, context, target, caller)


@router.patch("/{target}", operation_id="edit_dataset_target", responses=problems(403, 404, 409, 503))
async def edit_dataset_target(
    target: str, body: DatasetTargetEdit, caller: Operator, context: Context
) -> DatasetTargetView:
    """Change a target. The token can always be replaced; the places only while the target has no datasets."""
    before = await context.read(targets.existing, target)
    if (body.url is not None or body.token is not None) and not before.git_url:
        raise invalid_field("url" if body.url is not None else "token", f"target {target} is not kept in Git")
    token = None if body.token is None else _locked(context, body.token)
    await context.execute(targets.edit, caller, target, target_changes(body, token))
    return await context.read(_shown, context, target, caller)


@router.delete("/{target}", status_code=204, operation_id="delete_dataset_target", responses=problems(403, 404, 409))
async def delete_dataset_target(target: str, caller: Operator, context: Context) -> Response:
    """Delete a target. Refused while it has datasets. Stored objects are not removed."""
    await context.execute(targets.delete, caller, target)
    return Response(status_code=204)


@router.post("/{target}/test", operation_id="test_dataset_target", responses=problems(403, 404))
async def test_dataset_target(target: str, caller: Operator, context: Context) -> TargetTestView:
    """Test whether the target can be reached; an error is part of the answer."""
    await context.read(targets.existing, target)
    try:
        async with asyncio.timeout(TEST_SECONDS):
            return TargetTestView(
                ok=True, detail=await context.readers.do(caller.name, context.library.try_out, target)
            )
    except TimeoutError:
        return TargetTestView(ok=False, detail=f"no answer within {TEST_SECONDS:g} s")
    except Exception as error:  # noqa: BLE001 - every provider has its own errors; the caller must see them
        return TargetTestView(ok=False, detail=f"{error}"[:500] or type(error).__name__)


def _locked(context: ServerContext, token: str) -> str:
    try:
        return context.box.encrypt(token) if token else ""
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None


def _views(tx: Transaction, context: ServerContext, caller: Caller) -> list[DatasetTargetView]:
    counts = targets.dataset_counts(tx)
    return [_view(context, target, counts.get(target.name, 0), caller) for target in targets.all_targets(tx)]


def _shown(tx: Transaction, context: ServerContext, name: str, caller: Caller) -> DatasetTargetView:
    target = targets.existing(tx, name)
    return _view(context, target, targets.dataset_counts(tx).get(name, 0), caller)


def _view(context: ServerContext, target: DatasetTargetRecord, datasets: int, caller: Caller) -> DatasetTargetView:
    path = target.path or str(context.settings.datasets_path)
    return target_view(target, path=path, datasets=datasets, is_operator=caller.is_operator)
