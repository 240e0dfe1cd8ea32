"""Models and data sets for presets: list, register and remove."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from fastapi import Query, Response

from corral.control.jobs import preset_assets
from corral.control.records import AssetKind, PresetAssetRecord
from corral.presets.formats import FORMATS, BadData, classes_of
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.preset_assets import PresetAssetCreate, PresetAssetView, preset_asset_view

router = resource_router("/preset-assets", "presets")


@router.get("", operation_id="list_preset_assets", responses=problems())
async def list_preset_assets(
    caller: AnyCaller,
    context: Context,
    kind: Annotated[AssetKind | None, Query(description="Only models, or only data sets.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[PresetAssetView]:
    """The pretrained models and data sets that operators have registered for presets."""
    found = await context.read(lambda tables: tables.images.preset_assets())
    wanted = [asset for asset in found if kind is None or asset.kind is kind]
    page = page_of(wanted, key=lambda asset: (asset.kind.value, asset.name), limit=limit, cursor=cursor)
    return ListView(items=[preset_asset_view(asset) for asset in page.items], next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="add_preset_asset", responses=problems(403, 404, 409))
async def add_preset_asset(body: PresetAssetCreate, caller: Operator, context: Context) -> PresetAssetView:
    """Register a model or a data set. Nothing is copied: jobs read the source."""
    classes = body.classes
    if classes is None:
        classes = await asyncio.to_thread(_classes, body)
    asset = PresetAssetRecord(
        kind=AssetKind(body.kind),
        name=body.name,
        format=body.format,
        source=body.source,
        path=body.path,
        classes=tuple(classes),
        description=body.description,
        created_at=context.clock.now(),
        created_by=caller.name,
    )
    await context.execute(preset_assets.add, caller, asset, formats=FORMATS, replace=body.replace)
    return preset_asset_view(asset)


@router.delete("/{kind}/{name}", status_code=204, operation_id="delete_preset_asset", responses=problems(403, 404))
async def remove_preset_asset(kind: AssetKind, name: str, caller: Operator, context: Context) -> Response:
    """Remove a model or a data set from the list. Its files stay, and so do jobs that use it."""
    await context.execute(preset_assets.remove, caller, kind, name)
    return Response(status_code=204)


def _classes(body: PresetAssetCreate) -> list[str]:
    """The classes of a data set in a directory that the server sees; otherwise the training finds them."""
    if body.kind == "model" or not body.source.startswith("/") or body.format not in FORMATS:
        return []
    try:
        return classes_of(Path(body.source, body.path), body.format)
    except BadData as error:
        hint = "give its classes if only the nodes see it"
        raise invalid_field("source", f"{error}; {hint}") from None
