"""Forwards requests and WebSockets to the Jupyter of a workbench, piece by piece in both directions.

Decides which headers of a request Jupyter receives, and which headers of its answer the browser receives: Jupyter runs
its owner's code and is not trusted. `workbench_site` and `server/routes/workbenches/jupyter.py` decide who has access.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import httpcore
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Origin, Subprotocol

from corral.server.workbenches.workbench_routes import Way

Header = tuple[bytes, bytes]
#: Connects to a job's Jupyter; reads files, so it is called on a thread. Raises OSError.
WayTo = Callable[[str], Way]

#: Set in the scope of a request whose answer is forwarded.
FOREIGN = "corral.foreign"
#: Maximum of one message in either direction; notebooks with images are large.
MAX_MESSAGE_BYTES = 64 << 20

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
#: Headers for corral itself, and headers that would make Jupyter refuse a request that corral has checked.
_NOT_FOR_JUPYTER = frozenset(
    b"host authorization x-csrf-token expect forwarded x-forwarded-for x-forwarded-host x-forwarded-proto "
    b"x-forwarded-port x-real-ip x-request-id".split()
)
#: Headers that apply to more than the path of the workbench, or that this server sets itself.
_NOT_FOR_BROWSERS = frozenset(
    b"date server strict-transport-security service-worker-allowed clear-site-data alt-svc www-authenticate nel "
    b"report-to reporting-endpoints x-request-id origin-agent-cluster refresh cross-origin-resource-policy "
    b"cross-origin-opener-policy".split()
)
_CORS = b"access-control-"
_OWN_COOKIE = re.compile(r"(__host-|__secure-)?corral_", re.IGNORECASE)
_CONNECT_TRIES = 5
#: Methods of requests that are sent again if the program closed the connection without an answer, and how often.
_REPEATABLE = frozenset({"GET", "HEAD"})
_SEND_TRIES = 3
_TIMEOUTS = {"connect": 10.0, "read": 3600.0, "write": 600.0, "pool": 30.0}
#: Close codes that a peer never sends.
_UNSENT_CODES = frozenset({1004, 1005, 1006, 1015})


class Unreachable(Exception):
    """The workbench's Jupyter does not answer."""


# ---------------------------------------------------------------- headers


def request_headers(headers: Iterable[Header], host: str) -> list[Header]:
    """The request headers for Jupyter: none that would let it act in the name of the user."""
    headers = list(headers)
    dropped = _HOP_BY_HOP | _NOT_FOR_JUPYTER | _named_by_connection(headers)
    kept = [(b"host", host.encode("latin-1", "replace"))]
    for name, value in headers:
        key = name.lower()
        if key == b"cookie":
            foreign = foreign_cookies(value.decode("latin-1"))
            kept += [(b"cookie", foreign.encode("latin-1"))] if foreign else []
        elif key not in dropped:
            kept.append((name, value))
    return kept


def response_headers(headers: Iterable[Header], base: str) -> list[Header]:
    """The answer headers for the browser. Cookies are restricted to `base`, the workbench's own path."""
    headers = list(headers)
    dropped = _HOP_BY_HOP | _NOT_FOR_BROWSERS | _named_by_connection(headers)
    kept = []
    for name, value in headers:
        key = name.lower()
        if key == b"set-cookie":
            confined = confined_cookie(value.decode("latin-1"), base)
            kept += [(b"set-cookie", confined.encode("latin-1"))] if confined else []
        elif key not in dropped and not key.startswith(_CORS):
            kept.append((key, value))
    return kept


def foreign_cookies(text: str) -> str:
    """The cookies without corral's own, such as the session."""
    return "; ".join(part for part in map(str.strip, text.split(";")) if part and not _OWN_COOKIE.match(part))


def confined_cookie(text: str, base: str) -> str | None:
    """The cookie, restricted to the workbench's own path; None for a cookie with one of corral's names, or without a
    name: browsers send only the value of such a cookie, which may look like any other cookie."""
    pair, *attributes = [part.strip() for part in text.split(";")]
    named = pair.partition("=")[0].strip() if "=" in pair else ""
    if not named or _OWN_COOKIE.match(pair) or pair.lower().startswith("__host-"):
        return None
    path, kept = base, []
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        match name.strip().lower():
            case "path":
                path = value.strip() if value.strip().startswith(base) else base
            case "domain":
                continue
            case _:
                kept.append(attribute)
    return "; ".join([pair, f"Path={path}", *kept])


def _named_by_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    return frozenset(
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    )


def host_for(connection: HTTPConnection) -> str:
    """Jupyter compares the host with the origin, which corral has checked."""
    origin = connection.headers.get("origin", "")
    return origin.partition("://")[2] or connection.headers.get("host") or "localhost"


def target_of(connection: HTTPConnection) -> bytes:
    """Path and query exactly as requested, with all escapes."""
    raw: bytes = connection.scope.get("raw_path") or connection.scope["path"].encode()
    query: bytes = connection.scope["query_string"]
    return raw.partition(b"?")[0] + (b"?" + query if query else b"")


# ---------------------------------------------------------------- connections


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await asyncio.wait_for(self._reader.read(max_bytes), timeout)
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        except OSError as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self._writer.write(buffer)
            await asyncio.wait_for(self._writer.drain(), timeout)
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        self._writer.close()

    def get_extra_info(self, info: str) -> Any:
        # Checked for an idle connection: if it is readable, the other end has closed it.
        return self._reader.at_eof() if info == "is_readable" else None


class _Network(httpcore.AsyncNetworkBackend):
    """The host of an address is `<attempt>`, which identifies the job."""

    def __init__(self, opened: Callable[[str], Awaitable[Way]]) -> None:
        self._opened = opened

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        try:
            way = await self._opened(host.partition(".")[0])
            if way.tls is None:
                return _Stream(*await asyncio.open_unix_connection(sock=way.connection))
            return _Stream(*await asyncio.open_connection(sock=way.connection, **way.agreeing))
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error


class JupyterProxy:
    """`do` calls a function on one of the threads that a job has for it: a way may lead to another machine."""

    def __init__(self, way_to: WayTo, do: Callable[[str, WayTo, str], Awaitable[Way]]) -> None:
        self._way_to = way_to
        self._do = do
        self._pool = httpcore.AsyncConnectionPool(
            max_connections=None,
            max_keepalive_connections=50,
            keepalive_expiry=15.0,
            network_backend=_Network(self.opened),
        )

    async def close(self) -> None:
        await self._pool.aclose()

    async def opened(self, job_id: str) -> Way:
        """Connected. Raises OSError."""
        for _ in range(_CONNECT_TRIES - 1):
            try:
                return await (await self._do(job_id, self._way_to, job_id)).open()
            except BlockingIOError:
                # Its listen queue is full at this moment.
                await asyncio.sleep(0.05)
        return await (await self._do(job_id, self._way_to, job_id)).open()

    async def forward(self, request: Request, attempt_id: str, base: str, target: bytes | None = None) -> Response:
        """The streamed answer of an attempt's Jupyter or app; `target` is another path than that of the request. Raises
        Unreachable."""
        headers = request_headers(request.scope["headers"], host_for(request))
        has_length, is_chunked = "content-length" in request.headers, "transfer-encoding" in request.headers
        if is_chunked and not has_length:
            headers.append((b"transfer-encoding", b"chunked"))
        passed_on = httpcore.Request(
            request.method,
            httpcore.URL(scheme=b"http", host=attempt_id.encode(), port=None, target=target or target_of(request)),
            headers=headers,
            content=request.stream() if has_length or is_chunked else None,
            extensions={"timeout": _TIMEOUTS},
        )
        is_repeatable = request.method in _REPEATABLE and not has_length and not is_chunked
        try:
            answer = await self._sent(passed_on, tries=_SEND_TRIES if is_repeatable else 1)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise Unreachable(str(error)) from error
        except ClientDisconnect:
            return Response(status_code=499)
        request.scope[FOREIGN] = True
        return _Passed(answer, response_headers(answer.headers, base))

    async def _sent(self, request: httpcore.Request, *, tries: int) -> httpcore.Response:
        """The answer. A program may close an idle connection at the moment that it is used again: then the request is
        sent once more, on another connection."""
        for _ in range(tries - 1):
            try:
                return await self._pool.handle_async_request(request)
            except (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError):
                continue
        return await self._pool.handle_async_request(request)

    async def open(self, websocket: WebSocket, job_id: str, target: bytes | None = None) -> ClientConnection:
        """A WebSocket to a job's Jupyter or app, for the same address or for the path `target`. Raises Unreachable, or
        InvalidStatus with the answer if it refuses."""
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request_headers(websocket.scope["headers"], "")
            if name.lower() not in (b"host", b"origin", b"user-agent") and not name.lower().startswith(b"sec-websocket")
        ]
        origin = websocket.headers.get("origin")
        address = f"{host_for(websocket)}{(target or target_of(websocket)).decode('latin-1')}"
        try:
            way = await self.opened(job_id)
            kind: dict[str, Any] = {"unix": True} if way.tls is None else way.agreeing
            return await connect(
                f"ws://{address}" if way.tls is None else f"wss://{address}",
                sock=way.connection,
                **kind,
                origin=Origin(origin) if origin is not None else None,
                additional_headers=headers,
                user_agent_header=websocket.headers.get("user-agent"),
                subprotocols=[Subprotocol(name) for name in websocket.scope.get("subprotocols", [])] or None,
                compression=None,
                max_size=MAX_MESSAGE_BYTES,
                # The server pings the browser, and the kernel detects a dead machine.
                ping_interval=None,
                open_timeout=30.0,
                close_timeout=5.0,
            )
        except InvalidStatus:
            raise
        except (OSError, ValueError, InvalidHandshake, TimeoutError) as error:
            raise Unreachable(str(error)) from error


class _Passed(StreamingResponse):
    def __init__(self, answer: httpcore.Response, headers: list[Header]) -> None:
        super().__init__(_pieces(answer), status_code=answer.status)
        self.raw_headers = headers
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.aclose()


async def _pieces(answer: httpcore.Response) -> AsyncIterator[bytes]:
    async for piece in answer.aiter_stream():
        yield piece


# ---------------------------------------------------------------- WebSockets


async def bridge(websocket: WebSocket, upstream: ClientConnection, until: Callable[[], Awaitable[str]]) -> None:
    """Forward messages in both directions until one end closes, or `until` returns a reason. Closes both."""
    tasks = {
        asyncio.create_task(_to_jupyter(websocket, upstream)),
        asyncio.create_task(_to_browser(websocket, upstream)),
        asyncio.create_task(_until(until)),
    }
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        code, reason = next(iter(done)).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await upstream.close()
    if websocket.client_state.name == "CONNECTED" and websocket.application_state.name == "CONNECTED":
        try:
            await websocket.close(code, reason)
        except (RuntimeError, WebSocketDisconnect):
            return  # it is closed already


async def _to_jupyter(websocket: WebSocket, upstream: ClientConnection) -> tuple[int, str]:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return 1000, ""
        data = message.get("text")
        try:
            await upstream.send(data if data is not None else message["bytes"])
        except ConnectionClosed as closed:
            return _ending(closed)


async def _to_browser(websocket: WebSocket, upstream: ClientConnection) -> tuple[int, str]:
    while True:
        try:
            message = await upstream.recv()
        except ConnectionClosed as closed:
            return _ending(closed)
        try:
            if isinstance(message, str):
                await websocket.send_text(message)
            else:
                await websocket.send_bytes(message)
        except (RuntimeError, WebSocketDisconnect):
            return 1000, ""


async def _until(until: Callable[[], Awaitable[str]]) -> tuple[int, str]:
    return 1008, await until()


def _ending(closed: ConnectionClosed) -> tuple[int, str]:
    """Jupyter's close code; 1012 if it gave none."""
    if closed.rcvd is None or closed.rcvd.code in _UNSENT_CODES:
        return 1012, "the workbench is gone"
    return closed.rcvd.code, closed.rcvd.reason
