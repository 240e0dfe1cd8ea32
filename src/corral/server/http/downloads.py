"""Downloads of files that jobs wrote: whole or a range, always as an attachment.

A job may write a page that acts in the name of the user who opens it. So every file is sent as an attachment without a
known type, and in a sandbox in case that a browser shows it nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Protocol
from urllib.parse import quote

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from corral.control.ports import OpenedOutput
from corral.server.http import archives
from corral.server.http.problems import Problem
from corral.server.schemas.base import shown_time
from corral.server.storage.readers import PieceStream

POLICY = "sandbox; default-src 'none'; frame-ancestors 'none'"
OCTETS = "application/octet-stream"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
#: No file is larger; longer numbers are not parsed.
_MAX_DIGITS = 18


class Download(StreamingResponse):
    """`pieces` is closed when everything was sent, or the client has disconnected."""

    def __init__(
        self,
        pieces: PieceStream,
        name: str,
        *,
        media_type: str = OCTETS,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        safe = {
            **attachment(name),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
        }
        super().__init__(pieces, status, {**(headers or {}), **safe}, media_type)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pieces.close()


def attachment(name: str) -> dict[str, str]:
    """The header that makes a browser save an answer as a file, whatever characters its name has."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"}


class Through(Protocol):
    """Reads pieces: `Readers.pieces` for one user."""

    def __call__(self, source: Iterator[bytes], close: Callable[[], None] = ...) -> PieceStream: ...


def file_download(
    opened: OpenedOutput, name: str, wanted: str | None, if_range: str | None, through: Through
) -> Download:
    """The file, or the range that the Range header asks for."""
    changed = formatdate(shown_time(opened.modified_at), usegmt=True)
    headers = {"Accept-Ranges": "bytes", "ETag": opened.tag, "Last-Modified": changed}
    start, length = 0, opened.size_bytes
    status = 200
    # The file has changed: a range of another content is useless to the client.
    if wanted is not None and if_range in (None, opened.tag, changed):
        part = range_of(wanted, opened.size_bytes)
        if part is not None:
            start, length = part
            status = 206
            headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{opened.size_bytes}"
    headers["Content-Length"] = str(length)
    pieces = through(opened.pieces(start, length), opened.close)
    return Download(pieces, name, status=status, headers=headers)


def directory_download(opened: OpenedOutput, name: str, limit_bytes: int | None, through: Through) -> Download:
    """Files above the limit are only named in the archive."""
    pieces = through(archives.tar_gz(archives.bounded(opened.members(), limit_bytes)), opened.close)
    return Download(pieces, f"{name}.tar.gz", media_type=archives.MEDIA_TYPE)


def range_of(wanted: str, size: int) -> tuple[int, int] | None:
    """Start and length of a range; None if the whole file may be sent. Raises a 416 problem."""
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or match.groups() == ("", "") or max(map(len, match.groups())) > _MAX_DIGITS:
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return None
    if start >= size or end <= start:
        raise Problem(
            416,
            "Range not satisfiable",
            f"The file has {size} bytes.",
            slug="range-not-satisfiable",
            headers={"Content-Range": f"bytes */{size}"},
            numbers={"size_bytes": size},
        )
    return start, end - start
