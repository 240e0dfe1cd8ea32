"""Applied to every request: an id, a size limit, security headers, the measured time and a handler for errors.

One plain ASGI layer, because each further one costs every request. It does not depend on the routes.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corral.server.http.problems import Problem, unexpected
from corral.server.wiring.server_log import request_id
from corral.server.workbenches.proxy import FOREIGN

log = logging.getLogger("corral.server.requests")

MAX_BODY_BYTES = 4 * 1024 * 1024
#: The only body that is read from callers who are not signed in.
SIGN_IN = "/api/v1/auth/login"
MAX_SIGN_IN_BYTES = 64 * 1024
#: Bodies for these routes are forwarded or written piece by piece; the routes have limits of their own.
PASSED_ON = re.compile(
    r"/workbenches/.*|/api/v1/datasets/[^/]+/objects/[0-9a-f]{64}|/api/v1/volumes/[^/]+/uploads/[^/]+/parts/\d+"
)
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Origin-Agent-Cluster": "?1",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

#: What proxies call a request whose client left before it had an answer.
CLIENT_LEFT = 499

#: method, route template, status and seconds of a finished request
Observe = Callable[[str, str, int, float], None]


class RequestEnvelope:
    def __init__(self, app: ASGIApp, *, observe: Observe, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._observe = observe
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        asked = dict(scope["headers"])
        given = asked.get(b"x-request-id", b"").decode("latin-1")
        rid = given if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        token = request_id.set(rid)
        status = CLIENT_LEFT
        seconds: float | None = None

        async def sending(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = _add_foreign_headers(message, rid) if FOREIGN in scope else _add_headers(message, rid)
                if headers.get("content-type", "").startswith("text/event-stream"):
                    # A stream is open as long as its client wants: the time until its beginning is measured.
                    seconds = time.perf_counter() - started
            await send(message)

        try:
            length = asked.get(b"content-length", b"0")
            most = min(self._max_body_bytes, MAX_SIGN_IN_BYTES) if scope["path"] == SIGN_IN else self._max_body_bytes
            if PASSED_ON.fullmatch(scope["path"]):
                await self._guarded(scope, receive, sending)
            elif length.isdigit() and int(length) > most:
                await _too_large(most).response()(scope, receive, sending)
            else:
                await self._guarded(scope, _limited(receive, most), sending)
        finally:
            self._finish(scope, status, time.perf_counter() - started if seconds is None else seconds)
            request_id.reset(token)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            log.debug("%s %s: the client left before its request was complete", scope["method"], scope["path"])
        except Exception:
            # Unexpected errors are logged in full and answered in short.
            log.exception("unhandled error in %s %s", scope["method"], scope["path"])
            if begun:
                raise
            await unexpected()(scope, receive, send)

    def _finish(self, scope: Scope, status: int, seconds: float) -> None:
        # The template, not the path: a label per job id would grow without end.
        route = getattr(scope.get("route"), "path", "other")
        self._observe(scope["method"], route, status, seconds)
        level = logging.WARNING if status >= 500 else logging.DEBUG
        if log.isEnabledFor(level):
            log.log(level, "%s %s -> %d in %.1f ms", scope["method"], scope["path"], status, seconds * 1000)


def _limited(receive: Receive, most: int) -> Receive:
    """Stops reading at the limit, for bodies without a stated length."""
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, _too_large(most).detail)
        return message

    return receiving


def _too_large(most: int) -> Problem:
    return Problem(413, "Body too large", f"The body is larger than {most} bytes.", numbers={"limit_bytes": most})


def _add_foreign_headers(message: Message, rid: str) -> MutableHeaders:
    """Headers of a forwarded answer: the program behind it decides what its pages need."""
    headers = MutableHeaders(scope=message)
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Referrer-Policy", "same-origin")
    if "cache-control" not in headers:
        headers["Cache-Control"] = "private, no-cache"
    headers["X-Request-ID"] = rid
    return headers


def _add_headers(message: Message, rid: str) -> MutableHeaders:
    headers = MutableHeaders(scope=message)
    for name, value in SECURITY_HEADERS.items():
        # A route may set stricter headers.
        headers.setdefault(name, value)
    if "cache-control" not in headers:
        headers["Cache-Control"] = "no-store"
    headers["X-Request-ID"] = rid
    return headers
