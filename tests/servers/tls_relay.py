"""TLS in front of a server of a test: ends it and passes on what is inside, as a proxy does that looks at nothing."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corral.engines.workbenches.workbench_relay import between
from corral.stores.workbenches.workbench_keys import new_key


@contextmanager
def tls_relay(port: int, target: int) -> Iterator[None]:
    """Listens at `port` of this machine with a certificate that no client trusts, and forwards to `target`."""
    loop = asyncio.new_event_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        pem = Path(directory) / "key.pem"
        pem.write_bytes(new_key())
        context.load_cert_chain(pem)

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inside = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()  # the server is not there at this moment
            return
        await between((reader, writer), inside)

    # On a thread of its own: the one of a test may be a browser's.
    thread = threading.Thread(target=loop.run_forever, name="tls-relay", daemon=True)
    thread.start()
    starting = asyncio.start_server(passed, "127.0.0.1", port, ssl=context)
    listening = asyncio.run_coroutine_threadsafe(starting, loop).result(timeout=10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(listening.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
