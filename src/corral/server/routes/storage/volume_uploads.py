"""Uploads to volumes in parts: an interrupted upload can be continued, and the file appears once it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from corral.control.errors import OverLimit
from corral.control.ports.volume_files import FileMissing, StagedFile, StoredFile
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.storage.volume_files import (
    BYTES,
    ChecksumHeader,
    as_problems,
    check_checksum,
    modified_ms_of,
    named_parts_of,
    reached_volume,
)
from corral.server.schemas.storage.volume_files import (
    UploadComplete,
    UploadCreate,
    UploadView,
    VolumeFileView,
    file_view,
    upload_view,
)
from corral.server.storage.received import gathered
from corral.stores.storage.uploads import MAX_PARTS, UploadOrder

router = resource_router("/volumes", "volume files")

PartNumber = Annotated[int, Path(ge=0, lt=MAX_PARTS)]


@router.post("/{volume}/uploads", operation_id="begin_volume_upload", responses=problems(403, 404, 409, 503))
async def begin_volume_upload(volume: str, body: UploadCreate, caller: AnyCaller, context: Context) -> UploadView:
    """Begin an upload, or find the open upload of the same file with its received parts."""
    parts = named_parts_of(body.path)
    order = UploadOrder(
        path="/".join(parts),
        size_bytes=body.size,
        part_bytes=body.part_bytes,
        checksum=body.checksum,
        modified_ms=modified_ms_of(body.modified_at),
        user=caller.name,
    )
    if order.parts > MAX_PARTS:
        raise invalid_field("part_bytes", f"makes {order.parts} parts: {MAX_PARTS} at most")
    with as_problems(body.path):
        reached = await reached_volume(context, caller, volume, writes=True)
        upload = await context.steps.do(caller.name, reached.uploads.begin, order)
        try:
            context.volume_storage.announce(reached, order.id, upload.missing_bytes)
        except OverLimit:
            context.volume_storage.room.end(reached.volume, order.id)
            if not upload.have:
                await context.steps.do(caller.name, reached.uploads.abort, order.id)
            raise
        return upload_view(upload)


@router.get("/{volume}/uploads/{upload}", operation_id="get_volume_upload", responses=problems(403, 404, 409, 503))
async def get_volume_upload(volume: str, upload: str, caller: AnyCaller, context: Context) -> UploadView:
    """An open upload with its received parts."""
    with _upload_problems(upload):
        reached = await reached_volume(context, caller, volume, writes=True)
        return upload_view(await context.steps.do(caller.name, reached.uploads.get, upload))


@router.put(
    "/{volume}/uploads/{upload}/parts/{part}",
    status_code=204,
    operation_id="put_volume_upload_part",
    openapi_extra=BYTES,
    responses=problems(400, 403, 404, 409, 503),
)
async def put_volume_upload_part(
    volume: str,
    upload: str,
    part: PartNumber,
    request: Request,
    caller: AnyCaller,
    context: Context,
    x_checksum: ChecksumHeader = "",
) -> Response:
    """Send one part; it is accepted if the checksum matches. Sending it again changes nothing."""
    with _upload_problems(upload), ExitStack() as stack:
        reached = await reached_volume(context, caller, volume, writes=True)
        check_checksum(x_checksum)
        writer = await context.steps.do(caller.name, stack.enter_context, reached.uploads.part(upload, part))
        size = 0
        async for piece in gathered(request):
            size += len(piece)
            await context.steps.do(caller.name, writer.write, piece)
        await context.steps.do(caller.name, writer.finish, x_checksum)
        context.volume_storage.room.land(reached.volume, upload, size)
    return Response(status_code=204)


@router.post(
    "/{volume}/uploads/{upload}/complete",
    operation_id="complete_volume_upload",
    responses=problems(403, 404, 409, 503),
)
async def complete_volume_upload(
    volume: str, upload: str, body: UploadComplete, request: Request, caller: AnyCaller, context: Context
) -> VolumeFileView:
    """Verify the whole file and atomically give it its name. This takes as long as reading the file."""

    def publish(staged: StagedFile, order: UploadOrder) -> StoredFile:
        return reached.files.publish(staged, order.path.split("/"))

    with _upload_problems(upload):
        reached = await reached_volume(context, caller, volume, writes=True)
        steps = reached.uploads.complete(upload, body.checksum, publish)
        stored = await context.readers.run(caller.name, steps, request)
        context.volume_storage.room.end(reached.volume, upload)
        context.volume_storage.report_change(reached.volume)
        return file_view(stored)


@router.delete(
    "/{volume}/uploads/{upload}",
    status_code=204,
    operation_id="abort_volume_upload",
    responses=problems(403, 404, 409, 503),
)
async def abort_volume_upload(volume: str, upload: str, caller: AnyCaller, context: Context) -> Response:
    """Cancel an upload; its parts are removed."""
    with _upload_problems(upload):
        reached = await reached_volume(context, caller, volume, writes=True)
        await context.steps.do(caller.name, reached.uploads.abort, upload)
        context.volume_storage.room.end(reached.volume, upload)
    return Response(status_code=204)


@contextmanager
def _upload_problems(upload: str) -> Iterator[None]:
    with as_problems(f"upload {upload}"):
        try:
            yield
        except FileMissing as error:
            detail = f"There is no open upload {upload!r}: it is complete, was given up, or nothing came for a week."
            raise Problem(404, "No such upload", detail, slug="upload-missing") from error
