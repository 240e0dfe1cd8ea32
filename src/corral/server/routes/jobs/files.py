"""Files in a job's output directory: listed and downloaded by the job's owner and by operators."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from corral.control.errors import Forbidden, NotFound
from corral.control.ports import OutputMissing, OutputRefused
from corral.core.quantities import format_bytes
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http import archives, downloads
from corral.server.http.paging import Limit, read_cursor, write_cursor
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import own_record
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.files import FileView, file_view

router = resource_router("/jobs", "files")

Path = Annotated[
    str, Query(max_length=4096, description="Path relative to the output directory; empty: the directory itself.")
]

#: Longer than other cursors: it contains a file name with escaped characters.
Cursor = Annotated[str | None, Query(max_length=2560, description="`next_cursor` of the page before.")]


@router.get("/{job}/files", operation_id="list_files", responses=problems(403, 404))
async def list_files(
    job: str, caller: AnyCaller, context: Context, path: Path = "", limit: Limit = 50, cursor: Cursor = None
) -> ListView[FileView]:
    """The files and directories in one directory of the job's output, by name."""
    parts = parts_of(path)
    found = (await context.read(own_record, caller, job)).job
    context.audit.read(caller, "files.read", found.id, owner=found.user, item="/".join(parts))
    after = _after(cursor)
    try:
        entries, last = await context.readers.call(
            caller.name, lambda: context.outputs.entries(found.id, parts, after=after, limit=limit)
        )
    except (OutputMissing, OutputRefused) as error:
        raise _refusal(error, found.id, path) from error
    following = None if last is None else write_cursor((last,))
    return ListView(items=[file_view(entry, parts) for entry in entries], next_cursor=following)


@router.get(
    "/{job}/files/content",
    operation_id="download_file",
    response_class=Response,
    responses={
        200: {
            "description": "The file; a directory as .tar.gz.",
            "content": {downloads.OCTETS: {}, archives.MEDIA_TYPE: {}},
        },
        206: {"description": "The range that the Range header asks for.", "content": {downloads.OCTETS: {}}},
        **problems(403, 404, 416),
    },
)
async def download_file(
    job: str, request: Request, caller: AnyCaller, context: Context, path: Path = ""
) -> downloads.Download:
    """A file, a range of a file, or a directory as .tar.gz."""
    parts = parts_of(path)
    found = (await context.read(own_record, caller, job)).job
    context.audit.read(caller, "files.read", found.id, owner=found.user, item="/".join(parts))
    try:
        opened = await context.steps.do(caller.name, context.outputs.open, found.id, parts)
    except (OutputMissing, OutputRefused) as error:
        raise _refusal(error, found.id, path) from error
    try:
        name = parts[-1] if parts else f"{found.name}-outputs"
        through = partial(context.readers.pieces, caller.name)
        limit = context.disk_limits.job_bytes
        if opened.is_directory:
            return downloads.directory_download(opened, name, limit, through)
        if limit is not None and opened.size_bytes > limit:
            size = format_bytes(opened.size_bytes)
            message = f"{path}: it says that it has {size}, and a job may have {format_bytes(limit)} on the disk"
            raise Forbidden(message, field="path")
        wanted = request.headers.get("range")
        return downloads.file_download(opened, name, wanted, request.headers.get("if-range"), through)
    except BaseException:
        opened.close()
        raise


def parts_of(path: str) -> list[str]:
    """The path components. A path that leads outside is refused, whether or not it exists."""
    if path.startswith("/"):
        raise invalid_field("path", "must not begin with /: it is relative to the output directory")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise invalid_field("path", "must not contain ..")
    return parts


def _after(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    key = read_cursor(cursor)
    if len(key) != 1 or not isinstance(key[0], str):
        raise invalid_field("cursor", "is not a cursor of this list")
    return key[0]


def _refusal(error: Exception, job_id: str, path: str) -> NotFound | Forbidden:
    if isinstance(error, OutputMissing):
        return NotFound(f"job {job_id} has no {path!r} in its output directory", field="path")
    return Forbidden(f"{path}: {error}", field="path")
