"""Work of requests on files and programs of jobs and users, which may take long.

It has threads of its own, so that no other part of the server waits for it, and every user has the same share of them
(`stores/storage/fair_pool.py`). A server has two of these: one for heavy reading (checksums, archives, downloads,
searches), and one for short steps (a piece of an upload or of a followed log, a connection to a program), which do not
wait for the heavy ones. A request whose client has disconnected is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, ParamSpec, TypeVar

from fastapi import Request

from corral.core.storage.checksums import new_checksum
from corral.server.http.problems import Problem, stopping
from corral.stores.storage.fair_pool import DeadlinePassed, FairPool, Steps, Task, TaskCancelled, TooManyTasks

T = TypeVar("T")
Params = ParamSpec("Params")

#: How often the connection of the client is checked.
_LOOK_SECONDS = 0.5
_RETRY_SECONDS = 5


class Readers:
    def __init__(
        self,
        *,
        name: str = "reader",
        threads: int = 8,
        per_user: int = 2,
        waiting_per_user: int = 64,
        deadline_seconds: float = 3600.0,
    ) -> None:
        self._pool = FairPool(name, threads=threads, per_user=per_user, waiting_per_user=waiting_per_user)
        self._deadline_seconds = deadline_seconds

    def close(self) -> None:
        self._pool.close()

    async def run(self, user: str, steps: Steps[T], request: Request | None = None) -> T:
        """The generator's result. Raises a 503 problem if the user has too many tasks, or the task takes too long."""
        task = self._submit(user, steps)
        ended = _event_of(task)
        try:
            while request is not None and not await _happens(ended):
                if await request.is_disconnected():
                    # No client reads this answer; 499 is the status that proxies use for this case.
                    raise Problem(499, "Client left", "The client closed the connection.", slug="client-left")
            return await _answer(task, ended)
        except DeadlinePassed:
            detail = f"It takes longer than {self._deadline_seconds:g} s: ask for less at once."
            raise Problem(503, "Took too long", detail, slug="took-too-long") from None
        finally:
            task.cancel()

    async def call(self, user: str, function: Callable[[], T]) -> T:
        """The same for a function that cannot be interrupted: it occupies one of the user's threads."""
        return await self.run(user, _called(function))

    async def step(self, user: str, steps: Steps[T]) -> T:
        """The generator's result, for one step of a request that is under way: it is never refused."""
        task = self._pool.submit(user, steps, is_limited=False)
        try:
            return await _answer(task, _event_of(task))
        finally:
            task.cancel()

    async def do(self, user: str, function: Callable[Params, T], *args: Params.args, **kwargs: Params.kwargs) -> T:
        """The same for a function."""
        return await self.step(user, _called(partial(function, *args, **kwargs)))

    def pieces(self, user: str, source: Iterator[bytes], close: Callable[[], None] = lambda: None) -> PieceStream:
        """The iterator's pieces, to be sent; `close` is called when reading has ended."""
        submit = partial(self._pool.submit, is_limited=False)
        return PieceStream(submit, user, source, close)

    def _submit(self, user: str, steps: Steps[T]) -> Task[T]:
        try:
            return self._pool.submit(user, steps, deadline_seconds=self._deadline_seconds)
        except TooManyTasks:
            raise Problem(
                503,
                "Busy",
                "You have too many downloads, checksums and searches under way: try again in a moment.",
                slug="busy",
                headers={"Retry-After": str(_RETRY_SECONDS)},
            ) from None


class PieceStream:
    """An asynchronous iterator over pieces from the pool. No thread is occupied while the client is slow. At an empty
    piece another task may run first."""

    def __init__(
        self,
        submit: Callable[[str, Steps[bytes]], Task[bytes]],
        user: str,
        source: Iterator[bytes],
        close: Callable[[], None],
    ) -> None:
        self._submit = submit
        self._user = user
        self._source = source
        self._close = close
        self._task: Task[bytes] | None = None
        self._is_closed = False

    def __aiter__(self) -> PieceStream:
        return self

    async def __anext__(self) -> bytes:
        self._task = self._submit(self._user, _next_piece(self._source))
        piece = await _answer(self._task, _event_of(self._task))
        if not piece:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        """The file is closed after the present slice."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._task is None:
            self._end()
        else:
            self._task.cancel()
            self._task.future.add_done_callback(lambda _: self._end())

    def _end(self) -> None:
        if isinstance(self._source, Generator):
            self._source.close()
        self._close()


def _event_of(task: Task[Any]) -> asyncio.Event:
    """Set when the task has ended."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def notify(_: object) -> None:
        # The loop may be closed when the server stops.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    task.future.add_done_callback(notify)
    return ended


async def _happens(event: asyncio.Event) -> bool:
    """Whether the event is set within the timeout."""
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _answer(task: Task[T], ended: asyncio.Event) -> T:
    await ended.wait()
    try:
        return task.future.result()
    except TaskCancelled:
        raise stopping() from None


def checksum_steps(pieces: Iterable[bytes]) -> Steps[str]:
    """The checksum over all pieces."""
    found = new_checksum()
    for piece in pieces:
        found.update(piece)
        yield
    return found.hexdigest()


def _called(function: Callable[[], T]) -> Steps[T]:
    yield from ()
    return function()


def _next_piece(source: Iterator[bytes]) -> Steps[bytes]:
    """The next non-empty piece; empty at the end."""
    for piece in source:
        if piece:
            return piece
        yield
    return b""
