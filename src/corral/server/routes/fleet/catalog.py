"""Flavors and packages: those that operators offer, and those that the caller could use now."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Response

from corral.control.fleet import catalog, offers
from corral.control.fleet.live_fleet import Labels
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import FlavorRecord, PackageRecord
from corral.core.model import JobKind
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import invalid_field, showing_new
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.fleet.catalog import (
    DeletedView,
    FlavorCreate,
    FlavorEdit,
    FlavorView,
    NamesDelete,
    PackageCreate,
    PackageEdit,
    PackageView,
    flavor_changes,
    flavor_view,
    package_changes,
    package_view,
)

router = resource_router("", "catalog")

Kind = Annotated[
    JobKind | None, Query(description="Only packages that the caller could use now for a job of this kind.")
]
Nodes = Annotated[int | None, Query(ge=1, le=10_000, description="Number of nodes; only with a kind.")]


@router.get("/flavors", operation_id="list_flavors", responses=problems())
async def list_flavors(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[FlavorView]:
    """The flavors of the catalog: named kinds of hardware."""
    known = await context.read(catalog.load_catalog)
    kinds = await context.inspect(_kinds)
    page = page_of(known.flavors.values(), key=lambda flavor: (flavor.name,), limit=limit, cursor=cursor)
    return ListView(items=[flavor_view(item, known, kinds) for item in page.items], next_cursor=page.next_cursor)


@router.post("/flavors", status_code=201, operation_id="create_flavor", responses=problems(403, 409))
async def create_flavor(body: FlavorCreate, caller: Operator, context: Context) -> FlavorView:
    """Create a flavor: GPU models, node labels, and defaults for each GPU."""
    await context.execute(catalog.create_flavor, caller, FlavorRecord(**flavor_changes(body)))
    with showing_new():
        return await _flavor(context, body.name)


@router.get("/flavors/{name}", operation_id="get_flavor", responses=problems(404))
async def get_flavor(name: str, caller: AnyCaller, context: Context) -> FlavorView:
    """One flavor."""
    return await _flavor(context, name)


@router.patch("/flavors/{name}", operation_id="edit_flavor", responses=problems(403, 404, 409))
async def edit_flavor(name: str, body: FlavorEdit, caller: Operator, context: Context) -> FlavorView:
    """Change the given fields. Jobs that were submitted with the flavor keep their requests."""
    await context.execute(_edit_flavor, caller, name, flavor_changes(body))
    return await _flavor(context, name)


@router.delete("/flavors/{name}", status_code=204, operation_id="delete_flavor", responses=problems(403, 404, 409))
async def delete_flavor(name: str, caller: Operator, context: Context) -> Response:
    """Delete a flavor. Refused while a package uses it."""
    await context.execute(catalog.delete_flavors, caller, [name])
    return Response(status_code=204)


@router.post("/flavors:delete", operation_id="delete_flavors", responses=problems(403, 404, 409))
async def delete_flavors(body: NamesDelete, caller: Operator, context: Context) -> DeletedView:
    """Delete several flavors: all of them or none."""
    return DeletedView(deleted=await context.execute(catalog.delete_flavors, caller, body.names))


@router.get("/packages", operation_id="list_packages", responses=problems())
async def list_packages(
    caller: AnyCaller,
    context: Context,
    kind: Kind = None,
    nodes: Nodes = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[PackageView]:
    """All packages; with a kind, only those that the caller could use now, with the number of jobs that would start and
    the estimated start of the next one."""
    known = await context.read(catalog.load_catalog)
    if kind is None:
        if nodes is not None:
            raise invalid_field("nodes", "goes with a kind only")
        page = page_of(known.packages.values(), key=lambda package: (package.name,), limit=limit, cursor=cursor)
        return ListView(items=[package_view(item, known) for item in page.items], next_cursor=page.next_cursor)
    found = await context.inspect(offers.offers, known, caller.name, kind, context.clock.now(), nodes or 1)
    offered = page_of(found, key=lambda offer: (offer.package.name,), limit=limit, cursor=cursor)
    shown = [package_view(offer.package, known, offer) for offer in offered.items]
    return ListView(items=shown, next_cursor=offered.next_cursor)


@router.post("/packages", status_code=201, operation_id="create_package", responses=problems(403, 409))
async def create_package(body: PackageCreate, caller: Operator, context: Context) -> PackageView:
    """Create a package: a size that users choose instead of GPUs, CPUs and memory."""
    await context.execute(catalog.create_package, caller, PackageRecord(**package_changes(body)))
    with showing_new():
        return await _package(context, body.name)


@router.get("/packages/{name}", operation_id="get_package", responses=problems(404))
async def get_package(name: str, caller: AnyCaller, context: Context) -> PackageView:
    """One package, with how many of it would fit now."""
    return await _package(context, name)


@router.patch("/packages/{name}", operation_id="edit_package", responses=problems(403, 404))
async def edit_package(name: str, body: PackageEdit, caller: Operator, context: Context) -> PackageView:
    """Change the given fields. Jobs that were submitted with the package keep their size."""
    await context.execute(_edit_package, caller, name, package_changes(body))
    return await _package(context, name)


@router.delete("/packages/{name}", status_code=204, operation_id="delete_package", responses=problems(403, 404))
async def delete_package(name: str, caller: Operator, context: Context) -> Response:
    """Delete a package. Jobs that were submitted with it are not changed."""
    await context.execute(catalog.delete_packages, caller, [name])
    return Response(status_code=204)


@router.post("/packages:delete", operation_id="delete_packages", responses=problems(403, 404))
async def delete_packages(body: NamesDelete, caller: Operator, context: Context) -> DeletedView:
    """Delete several packages: all of them or none."""
    return DeletedView(deleted=await context.execute(catalog.delete_packages, caller, body.names))


async def _flavor(context: ServerContext, name: str) -> FlavorView:
    known = await context.read(catalog.load_catalog)
    return flavor_view(catalog.existing_flavor(known, name), known, await context.inspect(_kinds))


async def _package(context: ServerContext, name: str) -> PackageView:
    known = await context.read(catalog.load_catalog)
    return package_view(catalog.existing_package(known, name), known)


def _kinds(state: State) -> dict[tuple[Labels, str], int]:
    """GPUs by the labels of their nodes and their model."""
    return dict(state.fleet().kinds)


def _edit_flavor(work: Work, caller: Caller, name: str, changes: dict[str, Any]) -> FlavorRecord:
    known = catalog.existing_flavor(catalog.load_catalog(work.tx), name)
    return catalog.edit_flavor(work, caller, replace(known, **changes))


def _edit_package(work: Work, caller: Caller, name: str, changes: dict[str, Any]) -> PackageRecord:
    known = catalog.existing_package(catalog.load_catalog(work.tx), name)
    return catalog.edit_package(work, caller, replace(known, **changes))
