"""Reads of the store for requests, on threads of their own: a few at a time for each user.

A search in a large store takes seconds. One user with very many of them must not take all threads, and all connections
to the store, so that the requests of others wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from corral.server.http.problems import stopping

T = TypeVar("T")

THREADS = 32
PER_USER = 6

#: The user whose request is being answered; "" before the sign-in is checked.
current_user: ContextVar[str] = ContextVar("current_user", default="")


@dataclass(slots=True)
class _Turns:
    free: asyncio.Semaphore
    #: reads that wait or run
    reads: int = field(default=0)


class StoreReads:
    def __init__(self, *, threads: int = THREADS, per_user: int = PER_USER) -> None:
        self._per_user = per_user
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="store-read")
        self._turns: dict[str, _Turns] = {}

    @property
    def waiting(self) -> int:
        """Reads that wait or run."""
        return sum(turns.reads for turns in self._turns.values())

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, read: Callable[[], T]) -> T:
        """The result of a read, for the user of this request."""
        user = current_user.get()
        turns = self._turns.setdefault(user, _Turns(asyncio.Semaphore(self._per_user)))
        turns.reads += 1
        try:
            await turns.free.acquire()
        except BaseException:
            self._leave(user, turns)
            raise
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def give_back() -> None:
            ended.set()
            turns.free.release()
            self._leave(user, turns)

        try:
            reading = self._threads.submit(read)
        except RuntimeError:
            give_back()
            raise stopping() from None
        # When the read has ended, not when its client has left: until then it holds a thread.
        reading.add_done_callback(lambda _: _call(loop, give_back))
        await ended.wait()
        try:
            return reading.result()
        except CancelledError:
            raise stopping() from None

    def _leave(self, user: str, turns: _Turns) -> None:
        turns.reads -= 1
        if not turns.reads:
            self._turns.pop(user, None)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        return  # the loop is closed, because the server stops
