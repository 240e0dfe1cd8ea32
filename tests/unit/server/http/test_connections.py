"""A client that does not read what it asked for: the server lets it go, and serves the others meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

from corral.server.http.connections import ConnectionLimits, limited_protocol

PATIENCE_SECONDS = 60.0


class Endless:
    """An application whose answer never ends, as an event stream; it counts the streams that ended."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/short":
            await send({"type": "http.response.body", "body": b"short"})
            return
        gone = asyncio.create_task(self._gone(receive))
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            await asyncio.sleep(0)
        self.ended.set()

    async def _gone(self, receive: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


def test_a_follower_that_reads_nothing_is_disconnected() -> None:
    asyncio.run(asyncio.wait_for(_story(), PATIENCE_SECONDS))


async def _story() -> None:
    application = Endless()
    limits = ConnectionLimits(header_seconds=30, body_seconds=30, per_address=10, write_seconds=0.2)
    config = uvicorn.Config(application, http=limited_protocol(limits), lifespan="off", log_config=None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        port = listener.getsockname()[1]
        _, deaf = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        deaf.write(b"GET /endless HTTP/1.1\r\nHost: corral\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /short HTTP/1.1\r\nHost: corral\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"short\r\n0\r\n\r\n")
        await application.ended.wait()
        while limits.counts:
            await asyncio.sleep(0.01)
        for end in (deaf, writer):
            end.close()
        server.should_exit = True
        await serving
