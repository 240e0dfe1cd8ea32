"""The body of a request in blocks, for uploads that are written to the disk while they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import Request
from starlette.requests import ClientDisconnect

from corral.server.http.problems import Problem

#: Bytes that are collected before they are written.
WRITE_BYTES = 1024 * 1024


async def gathered(request: Request) -> AsyncIterator[bytes]:
    """The body in blocks that are large enough to be written."""
    gathered = bytearray()
    try:
        async for piece in request.stream():
            gathered += piece
            if len(gathered) >= WRITE_BYTES:
                yield bytes(gathered)
                gathered.clear()
    except ClientDisconnect:
        raise Problem(400, "Cut short", "The connection ended before the body did.", slug="cut-short") from None
    if gathered:
        yield bytes(gathered)
