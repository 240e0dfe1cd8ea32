"""The header `Idempotency-Key`: a creating request under a key is carried out once and answered alike for a day.

`StrictRoute` passes creating requests with the header to `run_once`; the first `execute` of the route then runs
its use case under the key (`corral.control.system.request_keys`).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import zstandard
from fastapi import Request
from starlette.responses import Response

from corral.control.system.request_keys import KeyedRequest, keep_answer
from corral.server.http.problems import invalid_field

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
#: Answers with secrets: they are stored encrypted, before they are sent.
SECRET_ANSWERS = frozenset({"create_token", "share_app"})
#: Larger answers are made again from the stored result.
MAX_ANSWER_BYTES = 1 << 20

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
#: The keyed request that is being answered; None without a key, or once its use case was passed to the controller.
_current: ContextVar[KeyedRequest | None] = ContextVar("keyed_request", default=None)


class AnswerKept(Exception):
    """The request was answered before: the stored answer is sent again."""


def take_keyed(user: str) -> KeyedRequest | None:
    """The keyed request of this task, for its first use case."""
    keyed = _current.get()
    if keyed is None or keyed.user:
        return None
    keyed.user = user
    return keyed


async def run_once(
    request: Request, key: str, operation: str, handler: Callable[[Request], Coroutine[Any, Any, Response]]
) -> Response:
    if not _KEY.fullmatch(key):
        raise invalid_field(HEADER, "must have 1 to 200 visible ASCII characters")
    body = await request.body()
    asked = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    keyed = KeyedRequest(
        user="", key=key, digest=hashlib.sha256(asked + body).hexdigest(), has_secret=operation in SECRET_ANSWERS
    )
    token = _current.set(keyed)
    try:
        response = await handler(request)
    except AnswerKept:
        return await asyncio.to_thread(_replayed, request, keyed)
    finally:
        _current.reset(token)
    if keyed.user:
        await _keep(request, keyed, response)
    return response


async def _keep(request: Request, keyed: KeyedRequest, response: Response) -> None:
    """A secret is stored before it is sent. Other answers can be made again, so that nothing waits for the disk."""
    context = request.app.state.context
    packed = await asyncio.to_thread(_packed, request, keyed, bytes(response.body))
    if len(packed) <= MAX_ANSWER_BYTES:
        saved = context.controller.execute(keep_answer, keyed.user, keyed.key, response.status_code, packed)
        if keyed.has_secret:
            await asyncio.wrap_future(saved)


def _packed(request: Request, keyed: KeyedRequest, body: bytes) -> bytes:
    if keyed.has_secret:
        encrypted: str = request.app.state.context.box.encrypt(body.decode())
        return encrypted.encode("ascii")
    return zstandard.ZstdCompressor().compress(body)


def _replayed(request: Request, keyed: KeyedRequest) -> Response:
    assert keyed.answer is not None
    assert keyed.status is not None
    if keyed.has_secret:
        body = request.app.state.context.box.decrypt(keyed.answer.decode("ascii")).encode()
    else:
        body = zstandard.ZstdDecompressor().decompress(keyed.answer)
    return Response(body, status_code=keyed.status, media_type="application/json", headers={REPLAYED: "true"})
