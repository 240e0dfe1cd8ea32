"""The event loop of an engine: all watches and all logs that are followed, on one thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import httpx

from corral.control.live.worker import Worker
from corral.engines.kubernetes.api.client import ApiClient

log = logging.getLogger("corral.engines.kubernetes")

Stream = Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]
_RESTART_SECONDS = 5.0


class Streams:
    """`watches` run as long as the engine; each is started again if it fails."""

    def __init__(self, api: ApiClient, watches: tuple[Stream, ...]) -> None:
        self._api = api
        self._watches = watches
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx.AsyncClient | None = None
        self._stop: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._worker = Worker("kubernetes-streams", self._run, every_seconds=1.0, interrupt=self._interrupt)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def call(self, function: Callable[[], None]) -> None:
        """Call it in the event loop. Without a loop, which begins or ends, nothing is called."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def run(self, stream: Stream) -> None:
        """Begin a stream. Only in the event loop."""
        assert self._client is not None
        task = asyncio.create_task(stream(self._client))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a stream of Kubernetes failed", exc_info=error)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        async with self._api.streams() as client:
            self._client, self._loop = client, asyncio.get_running_loop()
            for watch in self._watches:
                self.run(partial(_forever, watch))
            if not self._worker.is_stopping:
                await self._stop.wait()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _interrupt(self) -> None:
        if self._stop is not None:
            self.call(self._stop.set)


async def _forever(watch: Stream, client: httpx.AsyncClient) -> None:
    while True:
        try:
            await watch(client)
        except Exception:
            log.exception("a watch of Kubernetes failed, and begins again in %g s", _RESTART_SECONDS)
        await asyncio.sleep(_RESTART_SECONDS)
