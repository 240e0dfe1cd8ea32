"""Object stores: the buckets that operators open for volumes. All users see their names."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import ObjectStoreKind, ObjectStoreRecord
from corral.control.storage import object_stores
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.storage.object_stores import (
    ObjectStoreCreate,
    ObjectStoreEdit,
    ObjectStoreTestView,
    ObjectStoreView,
    object_store_view,
)
from corral.server.storage.mount_orders import look_into

router = resource_router("/object-stores", "object stores")


@router.get("", operation_id="list_object_stores", responses=problems())
async def list_object_stores(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ObjectStoreView]:
    """All object stores; addresses are shown to operators only."""

    def read(tables: Transaction) -> list[ObjectStoreView]:
        counts = object_stores.volumes_of(tables)
        return [_view(store, counts, caller) for store in tables.volumes.object_stores()]

    return page_of(await context.read(read), key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("", status_code=201, operation_id="create_object_store", responses=problems(403, 409, 503))
async def create_object_store(body: ObjectStoreCreate, caller: Operator, context: Context) -> ObjectStoreView:
    """Register a bucket with its credentials, which are stored encrypted and never shown again."""
    given = _locked(context, {**body.model_dump(), "kind": ObjectStoreKind(body.kind)})
    await context.execute(object_stores.create, caller, ObjectStoreRecord(**given))
    return await get_object_store(body.name, caller, context)


@router.get("/{store}", operation_id="get_object_store", responses=problems(404))
async def get_object_store(store: str, caller: AnyCaller, context: Context) -> ObjectStoreView:
    """One object store, without its credentials."""

    def read(tables: Transaction) -> ObjectStoreView:
        found = object_stores.existing(tables, store, field="object-store")
        return _view(found, object_stores.volumes_of(tables), caller)

    return await context.read(read)


@router.patch("/{store}", operation_id="edit_object_store", responses=problems(403, 404, 503))
async def edit_object_store(store: str, body: ObjectStoreEdit, caller: Operator, context: Context) -> ObjectStoreView:
    """Change the access to the same bucket. A secret that is left out is kept."""
    changes = _locked(context, body.model_dump(exclude_unset=True))
    await context.execute(object_stores.edit, caller, store, changes)
    return await get_object_store(store, caller, context)


@router.delete("/{store}", status_code=204, operation_id="delete_object_store", responses=problems(403, 404, 409))
async def delete_object_store(store: str, caller: Operator, context: Context) -> Response:
    """Remove an object store; the bucket is not changed. Refused while it has volumes."""
    await context.execute(object_stores.delete, caller, store)
    return Response(status_code=204)


@router.post("/{store}/test", operation_id="test_object_store", responses=problems(403, 404))
async def test_object_store(store: str, caller: Operator, context: Context) -> ObjectStoreTestView:
    """Test whether the bucket can be reached and read; an error has a hint."""
    found = await context.read(object_stores.existing, store, field="object-store")
    look = await look_into(found, context.box)
    return ObjectStoreTestView(ok=look.ok, detail=look.detail, objects_seen=look.objects_seen)


def _view(store: ObjectStoreRecord, counts: dict[str, int], caller: Caller) -> ObjectStoreView:
    return object_store_view(store, counts.get(store.name, 0), is_operator=caller.is_operator)


def _locked(context: ServerContext, given: dict[str, Any]) -> dict[str, Any]:
    if not given.get("secret"):
        return given
    try:
        return {**given, "secret": context.box.encrypt(given["secret"])}
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None
