"""Content of dataset versions: files, differences, and the pieces that clients send and fetch."""

from __future__ import annotations

from os import SEEK_END
from typing import Annotated, ParamSpec, TypeVar

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from corral.control.datasets import datasets
from corral.control.errors import NotFound
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import DatasetRecord, VersionRecord
from corral.server.auth.callers import AnyCaller, Context
from corral.server.datasets.dataset_library import MOST_INDEX_BYTES, MOST_PACK_BYTES, Spool, index_pieces
from corral.server.datasets.dataset_problems import looked_up
from corral.server.http import downloads
from corral.server.http.context import ServerContext
from corral.server.http.paging import Limit, page_of
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.datasets.dataset_files import (
    DiffView,
    LengthsView,
    MissingView,
    ObjectIds,
    ObjectTakenView,
    VersionFileView,
    diff_view,
    file_view,
)
from corral.server.storage.received import gathered

router = resource_router("/datasets", "datasets")

Path = Annotated[str, Query(max_length=4096, description="Path relative to the root of the version; empty: the root.")]
#: Longer than other cursors: it contains a file name with escaped characters.
Cursor = Annotated[str | None, Query(max_length=2560, description="`next_cursor` of the page before.")]
VersionQuery = Annotated[str, Query(min_length=1, max_length=64)]

Params = ParamSpec("Params")
Answer = TypeVar("Answer")


@router.get("/{dataset}/versions/{version}/files", operation_id="list_dataset_files", responses=problems(404, 503))
async def list_dataset_files(
    dataset: str,
    version: str,
    caller: AnyCaller,
    context: Context,
    path: Path = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[VersionFileView]:
    """The files and directories in one directory of a version, by name."""
    found, meant = await _read_by(caller, context, dataset, version)
    folder = _plain(path)
    entries = await looked_up(context.readers, caller.name, context.library.entries, found.target, meant, folder)
    page = page_of(entries, key=lambda entry: (_sortable(entry.name),), limit=limit, cursor=cursor)
    return ListView(items=[file_view(entry, folder) for entry in page.items], next_cursor=page.next_cursor)


@router.get(
    "/{dataset}/versions/{version}/content",
    operation_id="download_dataset_file",
    response_class=Response,
    responses={
        200: {"description": "The file.", "content": {downloads.OCTETS: {}}},
        206: {"description": "The range that the Range header asks for.", "content": {downloads.OCTETS: {}}},
        **problems(404, 416, 503),
    },
)
async def download_dataset_file(
    dataset: str, version: str, request: Request, caller: AnyCaller, context: Context, path: Path
) -> downloads.Download:
    """A file of a version, or a range of it. Damaged data is never sent."""
    found, meant = await _read_by(caller, context, dataset, version)
    inner = _plain(path)
    entry = await looked_up(context.readers, caller.name, context.library.entry, found.target, meant, inner)
    if entry.kind != "file":
        raise NotFound(f"{inner!r} is not a file but a {entry.kind}", field="path")
    start, length, status = 0, entry.size, 200
    headers = {"Accept-Ranges": "bytes", "ETag": f'"{entry.digest.hex()}"'}
    wanted = request.headers.get("range")
    part = None if wanted is None else downloads.range_of(wanted, entry.size)
    if part is not None:
        start, length = part
        status = 206
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{entry.size}"
    headers["Content-Length"] = str(length)
    pieces = await looked_up(context.readers, caller.name, context.library.content, found.target, entry, start, length)
    through = context.readers.pieces(caller.name, pieces)
    return downloads.Download(through, inner.rpartition("/")[2], status=status, headers=headers)


@router.get("/{dataset}/diff", operation_id="diff_dataset", responses=problems(404, 503))
async def diff_dataset(
    dataset: str,
    caller: AnyCaller,
    context: Context,
    to: VersionQuery = "latest",
    before: Annotated[
        str | None,
        Query(alias="from", min_length=1, max_length=64, description="Left out: the version before `to`."),
    ] = None,
) -> DiffView:
    """The changes from one version to another; the first version is compared with an empty one."""

    def read(tx: Transaction) -> tuple[DatasetRecord, VersionRecord | None, VersionRecord]:
        found = datasets.found(tx, caller, dataset)
        new = datasets.version_meant(tx, found, to)
        if before is not None:
            return found, datasets.version_meant(tx, found, before), new
        return found, tx.datasets.version(found.id, new.parent) if new.parent else None, new

    found, old, new = await context.read(read)
    difference = await looked_up(context.readers, caller.name, context.library.diff, found.target, old, new)
    return diff_view(difference, None if old is None else old.id, new.id)


# ------------------------------------------------------------------------------------------------ pieces


@router.post("/{dataset}/objects:missing", operation_id="find_missing_objects", responses=problems(403, 404, 503))
async def find_missing_objects(dataset: str, body: ObjectIds, caller: AnyCaller, context: Context) -> MissingView:
    """The pieces that must be sent before a commit can use them: all except those that the caller has sent before, and
    those of the newest version. Pieces of other datasets make no difference."""

    def read(tx: Transaction) -> tuple[DatasetRecord, VersionRecord | None]:
        found = datasets.writable(tx, caller, dataset)
        return found, tx.datasets.version(found.id, found.head) if found.head else None

    found, newest = await context.read(read)
    digests = [bytes.fromhex(text) for text in body.ids]
    missing = await looked_up(
        context.readers, caller.name, context.library.missing, found.target, caller.name, newest, digests
    )
    return MissingView(missing=[digest.hex() for digest in missing])


@router.put(
    "/{dataset}/objects/{pack}",
    operation_id="put_dataset_object",
    responses=problems(403, 404, 413, 503),
    openapi_extra={"requestBody": {"content": {downloads.OCTETS: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def put_dataset_object(
    dataset: str,
    pack: str,
    request: Request,
    caller: AnyCaller,
    context: Context,
    index_bytes: Annotated[
        int, Query(ge=1, le=MOST_INDEX_BYTES, description="Length of the index at the beginning of the body.")
    ],
) -> ObjectTakenView:
    """Send a pack of pieces: its index, followed by the pieces. Every piece is checked before the pack is stored."""
    if len(pack) != 64 or not all(digit in "0123456789abcdef" for digit in pack):
        raise invalid_field("pack", "must be 64 hexadecimal digits")
    found = await context.read(datasets.writable, caller, dataset)
    library = context.library
    length = request.headers.get("content-length", "")
    context.disk_guard.check_room(int(length) if length.isdecimal() and len(length) < 19 else 0)
    # A client may send slowly: meanwhile the pack is in a file, and only its sender waits.
    with library.receiving(caller.name), library.spool() as spool:
        index, size = await _received(request, context, caller.name, pack, index_bytes, spool)
        async with library.taking_in:
            await looked_up(
                context.readers, caller.name, library.take_in, found.target, caller.name, pack, index, size, spool
            )
    return ObjectTakenView(id=pack, bytes=size)


@router.post(
    "/{dataset}/versions/{version}/objects:lengths",
    operation_id="get_object_lengths",
    responses=problems(404, 503),
)
async def get_object_lengths(
    dataset: str, version: str, body: ObjectIds, caller: AnyCaller, context: Context
) -> LengthsView:
    """The length of each piece of a version, so that a client can plan its requests."""
    found, meant = await _read_by(caller, context, dataset, version)
    digests = [bytes.fromhex(text) for text in body.ids]
    return LengthsView(
        lengths=await looked_up(context.readers, caller.name, context.library.lengths, found.target, meant, digests)
    )


@router.post(
    "/{dataset}/versions/{version}/objects:read",
    operation_id="read_objects",
    response_class=Response,
    responses={
        200: {"description": "The pieces, concatenated.", "content": {downloads.OCTETS: {}}},
        **problems(404, 503),
    },
)
async def read_objects(
    dataset: str, version: str, body: ObjectIds, caller: AnyCaller, context: Context
) -> StreamingResponse:
    """Pieces of a version, in the order of the ids."""
    found, meant = await _read_by(caller, context, dataset, version)
    digests = [bytes.fromhex(text) for text in body.ids]
    pieces = await looked_up(context.readers, caller.name, context.library.read_pieces, found.target, meant, digests)
    return StreamingResponse(context.readers.pieces(caller.name, pieces), media_type=downloads.OCTETS)


async def _received(
    request: Request, context: ServerContext, user: str, pack: str, index_bytes: int, spool: Spool
) -> tuple[bytes, int]:
    """Write the index and as many bytes as it lists to the file; returns the index, and how many bytes follow. Further
    bytes are not read."""
    received, limit = 0, index_bytes + MOST_PACK_BYTES
    index, size = b"", None
    async for part in gathered(request):
        received += len(part)
        await context.steps.do(user, spool.write, part)
        if size is None and received >= index_bytes:
            index = await context.steps.do(user, _beginning, spool, index_bytes)
            async with context.library.taking_in:
                size = await looked_up(context.readers, user, index_pieces, pack, index)
            limit = min(limit, index_bytes + size)
        if received > limit:
            raise Problem(
                413, "Body too large", f"The pack has more than {limit} bytes.", numbers={"limit_bytes": limit}
            )
    if size is None or received != index_bytes + size:
        raise invalid_field("body", f"has {received} bytes, and its index says {index_bytes + (size or 0)}")
    return index, size


def _beginning(spool: Spool, length: int) -> bytes:
    spool.seek(0)
    found: bytes = spool.read(length)
    spool.seek(0, SEEK_END)
    return found


# ------------------------------------------------------------------------------------------------ shared functions


async def _read_by(
    caller: Caller, context: ServerContext, dataset: str, version: str
) -> tuple[DatasetRecord, VersionRecord]:
    """The version whose files are read; an operator's reads of others' datasets are recorded in the audit log."""
    found, meant = await context.read(_meant, caller, dataset, version)
    context.audit.read(caller, "files.read", found.id, owner=found.owner, item=meant.id)
    return found, meant


def _meant(tx: Transaction, caller: Caller, ref: str, word: str) -> tuple[DatasetRecord, VersionRecord]:
    found = datasets.found(tx, caller, ref)
    return found, datasets.version_meant(tx, found, word)


def _plain(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise invalid_field("path", "must not contain ..")
    return "/".join(parts)


def _sortable(name: str) -> str:
    """A name in a form that a cursor can contain."""
    return name.encode("utf-8", "backslashreplace").decode()
