"""Lets the server, and only the server, reach the Jupyter of a workbench on another machine.

It is run by path beside the workbench's program, with the standard library of Python 3.9 or later only. The server has
given one key to this workbench and keeps the same key for itself: both ends present its certificate and accept no
other, so that no other host can read the traffic, connect, or impersonate the workbench. Data is passed to Jupyter's
socket unchanged. It is a process of its own: an attack on its port does not affect the workbench.

    relay.py LISTEN FIRST LAST KEY SOCKET PORT     listens at one of the ports, and writes which into the file PORT
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
import sys
from typing import NoReturn

#: How long a client has to present the certificate, and how many may do so at a time.
HANDSHAKE_SECONDS = 10.0
MAX_UNAUTHENTICATED = 64
_PORT_TRIES = 50
_PIECE_BYTES = 1 << 16
#: A machine that is gone sends nothing: after about a minute its connections are closed.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def tls_context(key: str) -> ssl.SSLContext:
    """A TLS context that presents the certificate in the file and accepts no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(key)
    context.load_verify_locations(key)
    return context


def listen_at(listen: str, first: int, last: int) -> socket.socket:
    """A socket that listens at a free port of a range. Raises OSError."""
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET
    problem = OSError(f"no free port between {first} and {last}")
    for _ in range(_PORT_TRIES):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((listen, random.randint(first, last)))
            listener.listen(128)
        except OSError as error:
            listener.close()
            problem = error
            continue
        listener.setblocking(False)
        return listener
    raise problem


class Relay:
    """Accepts connections and forwards them to a socket of this machine."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext, target: str) -> None:
        self._listener = listener
        self._context = context
        self._target = target

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        unauthenticated = asyncio.Semaphore(MAX_UNAUTHENTICATED)
        tasks: set[asyncio.Task[None]] = set()
        while True:
            await unauthenticated.acquire()
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # Too many open files, or a client that hung up while waiting: the next one may succeed.
                say(f"a connection was not accepted: {error}")
                unauthenticated.release()
                await asyncio.sleep(0.1)
                continue
            task = loop.create_task(self._serve(accepted, unauthenticated))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _serve(self, accepted: socket.socket, unauthenticated: asyncio.Semaphore) -> None:
        try:
            outside = await self._accept_client(accepted)
        except OSError:
            # Not the server. Any host on the network may connect; a line for each would fill the log.
            accepted.close()
            return
        finally:
            unauthenticated.release()
        try:
            inside = await asyncio.open_unix_connection(self._target)
        except OSError:
            # Jupyter is not up yet, or gone: the client's connection is closed.
            outside[1].close()
            return
        await between(outside, inside)

    async def _accept_client(self, accepted: socket.socket) -> Streams:
        """Accept a connection after its TLS handshake. Raises OSError."""
        loop = asyncio.get_running_loop()
        keep_alive(accepted)
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, accepted, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def between(one: Streams, other: Streams) -> None:
    """Copy data in both directions until one end closes."""
    copies = [asyncio.ensure_future(passed(one[0], other[1])), asyncio.ensure_future(passed(other[0], one[1]))]
    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    for copy in copies:
        copy.cancel()
    await asyncio.gather(*copies, return_exceptions=True)
    for _, writer in (one, other):
        # Data that was written before is sent first.
        writer.close()


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            piece = await reader.read(_PIECE_BYTES)
            if not piece:
                return
            writer.write(piece)
            await writer.drain()
    except OSError:
        return  # the connection broke


def keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def say(text: str) -> None:
    print(f"corral: {text}", flush=True)  # noqa: T201


def write_port(path: str, port: int) -> None:
    """Written atomically: the workbench waits for this file."""
    draft = f"{path}.draft"
    with open(draft, "w") as file:
        file.write(str(port))
    os.replace(draft, path)


def main() -> NoReturn:
    listen, first, last, key, target, port_file = sys.argv[1:]
    try:
        context = tls_context(key)
        listener = listen_at(listen, int(first), int(last))
    except OSError as error:
        say(f"the relay cannot listen at {listen}: {error}")
        sys.exit(1)
    write_port(port_file, listener.getsockname()[1])
    asyncio.run(Relay(listener, context, target).run())
    sys.exit(0)


if __name__ == "__main__":
    main()
