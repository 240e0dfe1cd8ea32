"""TCP connections of this machine, carried to a port of a job by WebSockets: one WebSocket each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from corral.client.http.errors import ApiProblem, ClientError, ServerUnreachable, problem_of
from corral.client.http.transport import LOOPBACK, PREFIX, segment
from corral.core.os_errors import reason_of

_PIECE_BYTES = 1 << 16
_MAX_MESSAGE_BYTES = 1 << 20


class Tunnel:
    """Listens at a port of this machine's loopback address until it is cancelled."""

    def __init__(self, server: str, token: str | None, job: str, port: int | None, note: Callable[[str], None]) -> None:
        """Creates a tunnel. Without `port`, connections lead to the job's app. `note` gets messages for users."""
        first = server.split(",")[0]
        self._server = first
        query = f"?{urlencode({'port': port})}" if port is not None else ""
        self._address = f"ws{first.removeprefix('http')}{PREFIX}/jobs/{segment(job)}/tunnel{query}"
        self._is_local = urlsplit(first).hostname in LOOPBACK
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._note = note

    async def run(self, local_port: int, ready: Callable[[int], None]) -> None:
        """`ready` gets the port that is listened at. Raises ClientError if the port is taken or the job refuses."""
        # A first connection finds out whether the job accepts one at all.
        (await self._open()).transport.abort()
        try:
            server = await asyncio.start_server(self._accept, "127.0.0.1", local_port)
        except OSError as error:
            raise ClientError(
                f"port {local_port} of this machine cannot be used: {error.strerror}", hint="Choose another: --local 0."
            ) from None
        async with server:
            ready(int(server.sockets[0].getsockname()[1]))
            await server.serve_forever()

    async def _open(self) -> ClientConnection:
        """Raises ClientError."""
        try:
            return await connect(
                self._address,
                additional_headers=self._headers,
                compression=None,
                max_size=_MAX_MESSAGE_BYTES,
                proxy=None if self._is_local else True,
            )
        except InvalidStatus as refused:
            raise _problem(refused) from None
        except (OSError, TimeoutError) as error:
            raise ServerUnreachable(
                self._server, os.strerror(error.errno) if error.errno else reason_of(error)
            ) from None
        except InvalidHandshake as error:
            raise ClientError(f"the tunnel cannot be opened: {error}") from None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            remote = await self._open()
        except ClientError as error:
            self._note(str(error))
            writer.close()
            return
        copies = [asyncio.ensure_future(_outward(reader, remote)), asyncio.ensure_future(_inward(remote, writer))]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        writer.close()
        with contextlib.suppress(ConnectionClosed):
            await remote.close()


async def _outward(reader: asyncio.StreamReader, remote: ClientConnection) -> None:
    with contextlib.suppress(OSError, ConnectionClosed):
        while piece := await reader.read(_PIECE_BYTES):
            await remote.send(piece)
        # The program at the other end may still answer; the tunnel ends when it closes.
        await remote.wait_closed()


async def _inward(remote: ClientConnection, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ConnectionClosed):
        async for message in remote:
            writer.write(message if isinstance(message, bytes) else message.encode())
            await writer.drain()


def _problem(refused: InvalidStatus) -> ApiProblem:
    """The refusal in the server's own words."""
    status = refused.response.status_code
    try:
        document = json.loads(refused.response.body or b"{}")
    except ValueError:
        document = None
    return problem_of(status, document if isinstance(document, dict) else {})
