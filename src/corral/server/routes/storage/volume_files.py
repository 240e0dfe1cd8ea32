"""Files of volumes: list, download, verify, delete, and upload of small files in one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request
from starlette.responses import Response

from corral.control.live.unit_of_work import Caller
from corral.control.ports.volume_files import FileMissing, FileRefused, FilesUnavailable, OpenedFile
from corral.core.storage.checksums import checksum_of, is_checksum
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http import downloads
from corral.server.http.context import ServerContext
from corral.server.http.paging import read_cursor, write_cursor
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView, shown_time
from corral.server.schemas.storage.volume_files import (
    ChecksumView,
    VolumeFileView,
    checksum_view,
    file_view,
    time_ms,
    time_text,
)
from corral.server.storage.readers import checksum_steps
from corral.server.storage.volume_storage import Reached, check_size, check_unwritten
from corral.stores.storage.fair_pool import Steps
from corral.stores.storage.uploads import ChecksumMismatch, PartsMissing, UploadOrder

router = resource_router("/volumes", "volume files")

#: Files up to this size have a checksum in their answer, and can be uploaded in one request.
SMALL_BYTES = 1024 * 1024
MAX_NAME_BYTES = 255
MAX_NAMES = 100

Path = Annotated[str, Query(max_length=4096, description="Path relative to the volume's root; empty: the root.")]
Limit = Annotated[int, Query(ge=1, le=5000, description="Items on a page.")]
#: Longer than other cursors: it contains a path with escaped characters.
Cursor = Annotated[str | None, Query(max_length=40_000, description="`next_cursor` of the page before.")]
ModifiedAt = Annotated[str | None, Query(max_length=64, description="The file's modification time; default: now.")]
#: Checked last: a caller who may not use the volume learns nothing else.
ChecksumHeader = Annotated[
    str, Header(alias="X-Checksum", description="blake2b-256 of the body, in hexadecimal digits; required.")
]
IfMatch = Annotated[str | None, Header(description="Only if the file still has this ETag.")]

BYTES = {"requestBody": {"required": True, "content": {downloads.OCTETS: {"schema": {"type": "string"}}}}}


@router.get("/{volume}/files", operation_id="list_volume_files", responses=problems(404, 409, 503))
async def list_volume_files(
    volume: str,
    caller: AnyCaller,
    context: Context,
    path: Path = "",
    recursive: Annotated[bool, Query(description="All files below the directory.")] = False,
    limit: Limit = 500,
    cursor: Cursor = None,
) -> ListView[VolumeFileView]:
    """The entries of a directory of a volume, or all files below it, in a fixed order."""
    parts, after = parts_of(path), _after(cursor)
    with as_problems(path):
        reached = await reached_volume(context, caller, volume)
        context.audit.read(caller, "files.read", reached.volume.id, owner=reached.volume.owner, item="/".join(parts))
        found, last = await context.readers.call(
            caller.name, lambda: reached.files.listed(parts, recursive=recursive, after=after, limit=limit)
        )
    following = None if last is None else write_cursor(list(last))
    return ListView(items=[file_view(entry) for entry in found], next_cursor=following)


@router.get("/{volume}/files/stat", operation_id="stat_volume_file", responses=problems(404, 409, 503))
async def stat_volume_file(volume: str, caller: AnyCaller, context: Context, path: Path = "") -> VolumeFileView:
    """One file or directory."""
    parts = parts_of(path)
    with as_problems(path):
        reached = await reached_volume(context, caller, volume)
        context.audit.read(caller, "files.read", reached.volume.id, owner=reached.volume.owner, item="/".join(parts))
        return file_view(await context.steps.do(caller.name, reached.files.stat, parts))


@router.get(
    "/{volume}/files/content",
    operation_id="download_volume_file",
    response_class=Response,
    responses={
        200: {"description": "The file.", "content": {downloads.OCTETS: {}}},
        206: {"description": "The range that the Range header asks for.", "content": {downloads.OCTETS: {}}},
        **problems(404, 409, 412, 416, 503),
    },
)
async def download_volume_file(
    volume: str, request: Request, caller: AnyCaller, context: Context, path: Path, if_match: IfMatch = None
) -> downloads.Download:
    """A file or a range of it; a small file has its checksum in X-Checksum."""
    parts = parts_of(path)
    with as_problems(path):
        reached = await reached_volume(context, caller, volume)
        context.audit.read(caller, "files.read", reached.volume.id, owner=reached.volume.owner, item="/".join(parts))
        opened = await context.steps.do(caller.name, reached.files.open, parts)
        try:
            if if_match not in (None, "*", opened.tag):
                raise Problem(412, "Changed", f"{path} is another one by now.", slug="file-changed")
            check_size(reached.volume, opened.size_bytes)
            wanted, if_range = request.headers.get("range"), request.headers.get("if-range")
            through = partial(context.readers.pieces, caller.name)
            return await context.steps.do(caller.name, _download, opened, parts[-1], wanted, if_range, through)
        except BaseException:
            opened.close()
            raise


@router.get("/{volume}/files/checksum", operation_id="checksum_volume_file", responses=problems(404, 409, 503))
async def checksum_volume_file(
    volume: str, request: Request, caller: AnyCaller, context: Context, path: Path
) -> ChecksumView:
    """The checksum of a whole file; computing it takes as long as reading the file."""
    parts = parts_of(path)

    def computed(reached: Reached) -> Steps[ChecksumView]:
        opened = reached.files.open(parts)
        try:
            check_size(reached.volume, opened.size_bytes)
            checksum = yield from checksum_steps(opened.pieces(0, opened.size_bytes))
            return checksum_view(path, opened, checksum)
        finally:
            opened.close()

    with as_problems(path):
        reached = await reached_volume(context, caller, volume)
        context.audit.read(caller, "files.read", reached.volume.id, owner=reached.volume.owner, item="/".join(parts))
        return await context.readers.run(caller.name, computed(reached), request)


@router.put(
    "/{volume}/files/content",
    operation_id="put_volume_file",
    openapi_extra=BYTES,
    responses=problems(403, 404, 409, 413, 503),
)
async def put_volume_file(
    volume: str,
    request: Request,
    caller: AnyCaller,
    context: Context,
    path: Path,
    x_checksum: ChecksumHeader = "",
    modified_at: ModifiedAt = None,
) -> VolumeFileView:
    """Upload a small file in one request; larger files are uploaded in parts. It atomically replaces a file of the same
    name."""
    parts, modified_ms = named_parts_of(path), modified_ms_of(modified_at)
    content = await request.body()
    if len(content) > SMALL_BYTES:
        detail = f"A file of more than {SMALL_BYTES} bytes is uploaded in parts."
        raise Problem(413, "Body too large", detail, numbers={"limit_bytes": SMALL_BYTES, "asked": len(content)})
    order = UploadOrder(
        path="/".join(parts),
        size_bytes=len(content),
        part_bytes=SMALL_BYTES,
        checksum=x_checksum,
        modified_ms=modified_ms,
        user=caller.name,
    )
    with as_problems(path):
        reached = await reached_volume(context, caller, volume, writes=True)
        check_checksum(x_checksum)
        room = context.volume_storage.room
        context.volume_storage.announce(reached, order.id, len(content))
        try:
            stored = await context.steps.do(
                caller.name, reached.uploads.put, order, content, lambda staged, _: reached.files.publish(staged, parts)
            )
            room.land(reached.volume, order.id, len(content))
        finally:
            room.end(reached.volume, order.id)
        context.volume_storage.report_change(reached.volume)
    return file_view(stored)


@router.put("/{volume}/files/directory", operation_id="make_volume_directory", responses=problems(403, 404, 409, 503))
async def make_volume_directory(volume: str, caller: AnyCaller, context: Context, path: Path) -> VolumeFileView:
    """Create a directory and its parents; an existing one is kept. A bucket has no directories."""
    parts = named_parts_of(path)
    with as_problems(path):
        reached = await reached_volume(context, caller, volume, writes=True)
        return file_view(await context.steps.do(caller.name, reached.files.make_directory, parts))


@router.delete(
    "/{volume}/files", status_code=204, operation_id="delete_volume_file", responses=problems(403, 404, 409, 503)
)
async def delete_volume_file(
    volume: str,
    caller: AnyCaller,
    context: Context,
    path: Path,
    recursive: Annotated[bool, Query(description="Delete a directory with its content.")] = False,
) -> Response:
    """Delete a file, an empty directory, or a directory with its content. Of a link only the link is deleted."""
    parts = named_parts_of(path)
    with as_problems(path):
        reached = await reached_volume(context, caller, volume, writes=True)
        await context.readers.call(caller.name, lambda: reached.files.delete(parts, recursive=recursive))
        owner = reached.volume.owner
        context.audit.note(caller, "files.deleted", reached.volume.id, owner=owner, item="/".join(parts))
        context.volume_storage.report_change(reached.volume)
    return Response(status_code=204)


async def reached_volume(context: ServerContext, caller: Caller, word: str, *, writes: bool = False) -> Reached:
    reached = await context.read(context.volume_storage.find, caller, word, writes=writes)
    if writes and reached.volume.type.has_one_writer:
        await context.inspect(check_unwritten, reached.volume)
    return reached


def parts_of(path: str) -> list[str]:
    """The path components. A path that leads outside is refused, whether or not it exists."""
    if path.startswith("/"):
        raise invalid_field("path", "must not begin with /: it is relative to the volume's root")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise invalid_field("path", "must not contain ..")
    if "\x00" in path:
        raise invalid_field("path", "must not contain a NUL character")
    if len(parts) > MAX_NAMES:
        raise invalid_field("path", f"has {len(parts)} names: {MAX_NAMES} at most")
    for part in parts:
        size = len(part.encode("utf-8", "surrogateescape"))
        if size > MAX_NAME_BYTES:
            raise invalid_field("path", f"has a name of {size} bytes: {MAX_NAME_BYTES} at most")
    return parts


def named_parts_of(path: str) -> list[str]:
    parts = parts_of(path)
    if not parts:
        raise invalid_field("path", "must name a file")
    return parts


def modified_ms_of(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        found = time_ms(text)
    except ValueError as error:
        raise invalid_field("modified_at", str(error)) from None
    if not 0 <= found < 1 << 43:
        raise invalid_field("modified_at", "must be a time between 1970 and 2248")
    return found


def check_checksum(text: str) -> None:
    if not is_checksum(text):
        raise invalid_field("X-Checksum", "must be 64 hexadecimal digits: blake2b with 32 bytes")


@contextmanager
def as_problems(path: str) -> Iterator[None]:
    """Errors of the storage as problems with different types."""
    try:
        yield
    except FileMissing as error:
        raise Problem(404, "No such file", f"There is no {path!r} here.", slug="file-missing") from error
    except FileRefused as error:
        raise Problem(409, "Not possible with this file", f"{path}: {error}.", slug="file-refused") from error
    except FilesUnavailable as error:
        raise Problem(503, "The volume cannot be reached", f"{error}.", slug="volume-unavailable") from error
    except ChecksumMismatch as error:
        detail = f"What arrived is not what was sent: {error}."
        raise Problem(409, "Wrong checksum", detail, slug="checksum-mismatch") from error
    except PartsMissing as error:
        numbers = {"missing": error.missing[:100], "count": len(error.missing)}
        raise Problem(409, "Parts are missing", f"{error}.", slug="parts-missing", numbers=numbers) from error


def _after(cursor: str | None) -> list[str] | None:
    if cursor is None:
        return None
    key = read_cursor(cursor)
    if not key or not all(isinstance(part, str) for part in key):
        raise invalid_field("cursor", "is not a cursor of this list")
    return list(key)


def _download(
    opened: OpenedFile, name: str, wanted: str | None, if_range: str | None, through: downloads.Through
) -> downloads.Download:
    size = opened.size_bytes
    changed = formatdate(shown_time(opened.modified_ms // 1000), usegmt=True)
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": opened.tag,
        "Last-Modified": changed,
        "X-Modified-At": time_text(opened.modified_ms),
    }
    # The file has changed: a range of another content is useless to the client.
    part = downloads.range_of(wanted, size) if wanted is not None and if_range in (None, opened.tag, changed) else None
    start, length = part or (0, size)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{size}"
    pieces = opened.pieces(start, length)
    if part is None and size <= SMALL_BYTES:
        content = b"".join(pieces)
        headers["X-Checksum"] = checksum_of([content])
        # It may have become shorter since it was opened.
        pieces, length = iter([content]), len(content)
    headers["Content-Length"] = str(length)
    status = 206 if part is not None else 200
    return downloads.Download(through(pieces, opened.close), name, status=status, headers=headers)
