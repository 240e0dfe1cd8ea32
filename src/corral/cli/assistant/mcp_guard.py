"""Access to `corral mcp --http` and its limits: an ASGI application before that of the protocol.

A request needs a token that corral accepts. Bodies, the requests of one token at a time and per minute, and the time
that a body takes are limited, so that one assistant does not use up the server that others share.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from corral.client.client import Client
from corral.client.http.errors import ApiProblem, ClientError

MAX_BODY_BYTES = 1 << 20
BODY_SECONDS = 30.0
#: limits of one token: requests at the same time, and per minute
AT_ONCE = 8
PER_MINUTE = 240
#: A token that was accepted, or refused, is asked about again after so many seconds.
ACCEPTED_SECONDS = 60.0
REFUSED_SECONDS = 10.0
MAX_KNOWN = 10_000
#: Tokens that are asked about at the same time, in all.
CHECKS_AT_ONCE = 4

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class Refused(Exception):
    """The answer to a request that is not passed on."""

    def __init__(self, status: int, text: str, *, retry_after: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after


class Guard:
    """`inner` answers a request; its first argument is the token. `is_valid` asks corral about a token, on a thread;
    it raises ClientError if corral does not answer."""

    def __init__(
        self,
        inner: Callable[[str, Any, Receive, Send], Awaitable[None]],
        is_valid: Callable[[str], bool],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._is_valid = is_valid
        self._monotonic = monotonic
        self._checking = asyncio.Semaphore(CHECKS_AT_ONCE)
        #: by the digest of the token: whether it is valid, and until when that is believed
        self._known: OrderedDict[bytes, tuple[bool, float]] = OrderedDict()
        self._running: Counter[bytes] = Counter()
        #: the requests that a token has left, and when that was
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        try:
            token = bearer(scope)
            if token is None:
                raise Refused(401, "A token of corral is needed as bearer token.")
            key = hashlib.sha256(token.encode()).digest()
            if not await self._accepts(token, key):
                raise Refused(401, "corral does not accept this token.")
            with self._counted(key):
                body = await _body(scope, receive)
                await self._inner(token, scope, _again(body, receive), send)
        except Refused as refused:
            await _answer(send, refused)

    async def _accepts(self, token: str, key: bytes) -> bool:
        if (known := self._fresh(key)) is not None:
            return known
        async with self._checking:
            if (known := self._fresh(key)) is not None:
                return known
            try:
                valid = await asyncio.to_thread(self._is_valid, token)
            except ClientError as error:
                raise Refused(503, f"corral cannot be asked: {error}", retry_after=5) from None
        self._known[key] = (valid, self._monotonic() + (ACCEPTED_SECONDS if valid else REFUSED_SECONDS))
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return valid

    def _fresh(self, key: bytes) -> bool | None:
        valid, until = self._known.get(key, (False, float("-inf")))
        return valid if self._monotonic() < until else None

    @contextmanager
    def _counted(self, key: bytes) -> Iterator[None]:
        """Count a request of the token. Raises Refused beyond its limits."""
        now = self._monotonic()
        left, at = self._left.pop(key, (float(PER_MINUTE), now))
        left = min(float(PER_MINUTE), left + (now - at) * PER_MINUTE / 60)
        allowed = left >= 1 and self._running[key] < AT_ONCE
        self._left[key] = (left - allowed, now)
        while len(self._left) > MAX_KNOWN:
            self._left.popitem(last=False)
        if not allowed:
            raise Refused(
                429, f"One token has at most {AT_ONCE} requests at a time and {PER_MINUTE} in a minute.", retry_after=5
            )
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]


def is_accepted(corral: str, token: str) -> bool:
    """Whether corral accepts the token. Raises ClientError if it does not answer."""
    try:
        with Client(corral, token) as client:
            client.people.me()
    except ApiProblem as problem:
        if problem.status in (401, 403):
            return False
        raise
    return True


def bearer(scope: Any) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].decode("latin-1")).strip() or None
    return None


async def _body(scope: Any, receive: Receive) -> bytes:
    """The whole body. Raises Refused if it is too long, or takes too long."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise Refused(413, f"The body is larger than {MAX_BODY_BYTES} bytes.")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    raise Refused(413, f"The body is larger than {MAX_BODY_BYTES} bytes.")
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refused(408, f"The body took longer than {BODY_SECONDS:g} s.") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """The body as one message, and then what follows."""
    is_sent = False

    async def received() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


async def _answer(send: Send, refused: Refused) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.retry_after is not None:
        headers.append((b"retry-after", str(refused.retry_after).encode()))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": str(refused).encode()})
