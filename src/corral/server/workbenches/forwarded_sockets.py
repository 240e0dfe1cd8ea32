"""Passes a WebSocket on to the leader, with the caller's own credentials: shells, tunnels and pages of workbenches."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.typing import Origin, Subprotocol

from corral.server.workbenches.proxy import MAX_MESSAGE_BYTES, bridge, target_of

log = logging.getLogger("corral.server.forwarding")

CONNECT_SECONDS = 2.0
#: The leader opens a shell in a cluster, or a connection to a job, before it agrees.
OPEN_SECONDS = 60.0
_PORTS = {"http": 80, "https": 443}
#: Set by the client of WebSockets itself.
_OWN = frozenset({b"host", b"origin", b"user-agent"})


async def forward_socket(
    websocket: WebSocket,
    leader: str,
    headers: Iterable[tuple[bytes, bytes]],
    tls: ssl.SSLContext,
    until: Callable[[], Awaitable[str]],
    no_answer: Callable[[], Response],
) -> None:
    """Copies data until one end closes, or `until` returns a reason. The leader's refusal is passed on;
    `no_answer` is sent if the leader does not answer."""
    try:
        upstream = await _opened(websocket, leader, headers, tls)
    except InvalidStatus as refusal:
        await websocket.send_denial_response(_passed(refusal))
        return
    except (OSError, ValueError, InvalidHandshake, TimeoutError) as error:
        log.info("the WebSocket %s was not opened by the leader: %r", websocket.scope["path"], error)
        await websocket.send_denial_response(no_answer())
        return
    try:
        await websocket.accept(subprotocol=upstream.subprotocol)
    except BaseException:
        await upstream.close()
        raise
    await bridge(websocket, upstream, until)


async def _opened(
    websocket: WebSocket, leader: str, headers: Iterable[tuple[bytes, bytes]], tls: ssl.SSLContext
) -> ClientConnection:
    place = urlsplit(leader)
    is_secure = place.scheme == "https"
    sock = await asyncio.to_thread(
        socket.create_connection, (place.hostname, place.port or _PORTS[place.scheme]), CONNECT_SECONDS
    )
    try:
        sock.setblocking(False)
        kept = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in headers
            if name.lower() not in _OWN and not name.lower().startswith(b"sec-websocket")
        ]
        origin = websocket.headers.get("origin")
        secure: dict[str, Any] = {"ssl": tls, "server_hostname": place.hostname} if is_secure else {}
        # The host of the caller: it says which workbench the page is of.
        address = f"{websocket.headers.get('host') or place.netloc}{target_of(websocket).decode('latin-1')}"
        return await connect(
            f"{'wss' if is_secure else 'ws'}://{address}",
            sock=sock,
            **secure,
            origin=Origin(origin) if origin is not None else None,
            additional_headers=kept,
            user_agent_header=websocket.headers.get("user-agent"),
            subprotocols=[Subprotocol(name) for name in websocket.scope.get("subprotocols", [])] or None,
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            # The leader pings.
            ping_interval=None,
            open_timeout=OPEN_SECONDS,
            close_timeout=5.0,
        )
    except BaseException:
        sock.close()
        raise


def _passed(refusal: InvalidStatus) -> Response:
    response = refusal.response
    kept = {
        name: value for name, value in response.headers.raw_items() if name.lower() in ("content-type", "retry-after")
    }
    return Response(bytes(response.body or b""), status_code=response.status_code, headers=kept)
