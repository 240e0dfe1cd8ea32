"""A load balancer that looks at nothing: each connection goes to the first of several servers at which one listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from corral.engines.workbenches.workbench_relay import between
from tests.servers.corral_server import free_port


@contextmanager
def balancer(ports: Sequence[int]) -> Iterator[str]:
    """The address at which it listens."""
    loop, own = asyncio.new_event_loop(), free_port()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in ports:
            try:
                inside = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            await between((reader, writer), inside)
            return
        writer.close()

    async def end() -> None:
        listening.close()
        open_ones = asyncio.all_tasks() - {asyncio.current_task()}
        for one in open_ones:
            one.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)

    # On a thread of its own: the one of a test may be a browser's.
    thread = threading.Thread(target=loop.run_forever, name="balancer", daemon=True)
    thread.start()
    starting = asyncio.start_server(passed, "127.0.0.1", own)
    listening = asyncio.run_coroutine_threadsafe(starting, loop).result(timeout=10)
    try:
        yield f"http://127.0.0.1:{own}"
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
