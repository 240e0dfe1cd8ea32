"""Volumes: storage that jobs mount and that outlives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response

from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.ports import Transaction
from corral.control.records import VolumeRecord
from corral.control.storage import volumes
from corral.core.storage.volumes import VolumeType
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.storage.volumes import (
    VolumeCreate,
    VolumeEdit,
    VolumeSharesPut,
    VolumeView,
    draft_of,
    share_of,
    volume_view,
)

router = resource_router("/volumes", "volumes")

#: Jobs that are shown with a volume that they mount.
SHOWN_JOBS = 50

Owner = Annotated[str | None, Query(max_length=253, description="Owner, if several volumes have this name.")]
Name = Annotated[str | None, Query(min_length=1, max_length=253, description="Text in the name.")]


@router.get("", operation_id="list_volumes", responses=problems())
async def list_volumes(
    caller: AnyCaller,
    context: Context,
    name: Name = None,
    owner: Owner = None,
    type: Annotated[VolumeType | None, Query()] = None,
    mine: Annotated[bool, Query(description="One's own only.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[VolumeView]:
    """Volumes of the caller and those that are shared with the caller; operators see all."""
    found = [
        volume
        for volume in await context.read(volumes.visible, caller)
        if (name is None or name.casefold() in volume.name.casefold())
        and owner in (None, volume.owner)
        and type in (None, volume.type)
        and (not mine or volume.owner == caller.name)
    ]
    page = page_of(found, key=lambda volume: (volume.name, volume.owner), limit=limit, cursor=cursor)
    return ListView(items=await _views(context, caller, page.items), next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="create_volume", responses=problems(403, 409))
async def create_volume(body: VolumeCreate, caller: AnyCaller, context: Context) -> VolumeView:
    """Create a volume. Jobs can mount it at once; they wait until it is ready."""
    return await _view(context, caller, await context.execute(volumes.create, caller, draft_of(body)))


@router.get("/{volume}", operation_id="get_volume", responses=problems(404))
async def get_volume(volume: str, caller: AnyCaller, context: Context, owner: Owner = None) -> VolumeView:
    """A volume by id, or by name; without an owner, the caller's own volume is preferred."""
    return await _view(context, caller, await context.read(volumes.find_volume, caller, word(volume, owner)))


@router.patch("/{volume}", operation_id="edit_volume", responses=problems(403, 404, 409))
async def edit_volume(
    volume: str, body: VolumeEdit, caller: AnyCaller, context: Context, owner: Owner = None
) -> VolumeView:
    """Enlarge a volume, or change its description."""
    if body.size is None and body.description is None:
        return await get_volume(volume, caller, context, owner)
    edited = await context.execute(
        volumes.edit, caller, word(volume, owner), size_bytes=body.size, description=body.description
    )
    return await _view(context, caller, edited)


@router.put("/{volume}/shares", operation_id="share_volume", responses=problems(403, 404))
async def share_volume(
    volume: str, body: VolumeSharesPut, caller: AnyCaller, context: Context, owner: Owner = None
) -> VolumeView:
    """Set the users and groups that the volume is shared with. Running jobs keep their access."""
    shares = [share_of(share) for share in body.shares]
    return await _view(context, caller, await context.execute(volumes.share, caller, word(volume, owner), shares))


@router.delete("/{volume}", status_code=204, operation_id="delete_volume", responses=problems(403, 404, 409))
async def delete_volume(volume: str, caller: AnyCaller, context: Context, owner: Owner = None) -> Response:
    """Delete a volume with its content; the content of a bucket is kept. Refused while a live job mounts the volume."""
    await context.execute(volumes.delete, caller, word(volume, owner))
    return Response(status_code=204)


def word(volume: str, owner: str | None) -> str:
    return volume if owner is None else f"{owner}/{volume}"


async def _view(context: ServerContext, caller: Caller, volume: VolumeRecord) -> VolumeView:
    [view] = await _views(context, caller, [volume])
    return view


async def _views(context: ServerContext, caller: Caller, found: Sequence[VolumeRecord]) -> list[VolumeView]:
    jobs = await context.inspect(_jobs_with, caller, [volume.id for volume in found])

    def read(tables: Transaction) -> list[VolumeView]:
        return [
            volume_view(
                volume,
                caller,
                may_write=volumes.may_write(tables, caller, volume),
                jobs=[record for job_id in jobs[volume.id] if (record := tables.jobs.get(job_id)) is not None],
            )
            for volume in found
        ]

    return await context.read(read)


def _jobs_with(state: State, caller: Caller, volume_ids: Sequence[str]) -> dict[str, list[str]]:
    return {
        volume_id: [job.id for job in volumes.jobs_with(state, volume_id) if may_see_job(caller, job.user)][:SHOWN_JOBS]
        for volume_id in volume_ids
    }
