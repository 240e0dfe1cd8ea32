"""The asynchronous twin of the client: the same requests, made by threads, so that an event loop is never blocked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, Unpack

from corral.client.client import Client
from corral.client.functions.calls import Call, Functions
from corral.client.http.errors import ServerUnreachable
from corral.client.http.streams import LogEnd, LogText, Patience
from corral.client.jobs.jobs import ENDED_STATES, Jobs

if TYPE_CHECKING:
    from corral.client.views import JobArray, JobClone, JobCreate, JobEdit, JobView, PlanView, WhyView

T = TypeVar("T")
P = ParamSpec("P")


class AsyncClient:
    """
    async with AsyncClient.from_environment() as corral:
        job = await corral.jobs.submit({"command": ["python", "train.py"], "gpus": 2})
        ended = await corral.jobs.wait(job["id"])

    `run` calls any other method of the client: `await corral.run(corral.client.people.me)`.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.jobs = AsyncJobs(client.jobs)

    @classmethod
    def from_environment(
        cls, server: str | None = None, token: str | None = None, *, environment: Mapping[str, str] = os.environ
    ) -> Self:
        return cls(Client.from_environment(server, token, environment=environment))

    async def run(self, method: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the client in a thread."""
        return await asyncio.to_thread(method, *args, **kwargs)

    def functions(self, *, python: str | None = None, **settings: Unpack[JobCreate]) -> AsyncFunctions:
        """Calls Python functions in jobs of these settings."""
        return AsyncFunctions(self.client.functions(python=python, **settings))

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.to_thread(self.client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class AsyncJobs:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def submit(self, body: JobCreate) -> JobView:
        return await asyncio.to_thread(self._jobs.submit, body)

    async def submit_batch(self, bodies: Sequence[JobCreate]) -> list[JobView]:
        return await asyncio.to_thread(self._jobs.submit_batch, bodies)

    async def submit_array(self, body: JobArray) -> list[JobView]:
        return await asyncio.to_thread(self._jobs.submit_array, body)

    async def plan(self, body: JobCreate) -> PlanView:
        return await asyncio.to_thread(self._jobs.plan, body)

    async def clone(self, job: str, changes: JobClone) -> JobView:
        return await asyncio.to_thread(self._jobs.clone, job, changes)

    async def get(self, job: str) -> JobView:
        return await asyncio.to_thread(self._jobs.get, job)

    async def edit(self, job: str, changes: JobEdit) -> JobView:
        return await asyncio.to_thread(self._jobs.edit, job, changes)

    async def start(self, job: str) -> JobView:
        return await asyncio.to_thread(self._jobs.start, job)

    async def stop(self, job: str) -> JobView:
        return await asyncio.to_thread(self._jobs.stop, job)

    async def delete(self, job: str) -> None:
        await asyncio.to_thread(self._jobs.delete, job)

    async def why(self, job: str, *, at: str | None = None) -> WhyView:
        return await asyncio.to_thread(lambda: self._jobs.why(job, at=at))

    async def log(self, job: str, *, attempt: int | None = None, rank: int = 0, tail: int | None = None) -> str:
        return await asyncio.to_thread(lambda: self._jobs.log(job, attempt=attempt, rank=rank, tail=tail))

    def list(
        self,
        *,
        states: Sequence[str] = (),
        user: str | None = None,
        queue: str | None = None,
        array: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[JobView]:
        return _iterated(self._jobs.list(states=states, user=user, queue=queue, array=array, limit=limit))

    def follow_log(
        self, job: str, *, attempt: int | None = None, rank: int = 0, tail: int | None = None
    ) -> AsyncIterator[LogText | LogEnd]:
        """Yields the log as it is written, until the job has ended."""
        return _iterated(self._jobs.follow_log(job, attempt=attempt, rank=rank, tail=tail))

    async def wait(self, job: str, *, on_change: Callable[[JobView], None] = lambda view: None) -> JobView:
        """Like `Jobs.wait`; no thread is blocked while the job runs."""
        pauses: list[float] = []
        patience = Patience(sleep=pauses.append)
        seen: tuple[str, int | None] | None = None
        while True:
            try:
                view = await self.get(job)
            except ServerUnreachable as error:
                patience.lost(error)
            else:
                if (view["state"], view["attempt"]) != seen:
                    seen = (view["state"], view["attempt"])
                    patience.reached()
                    on_change(view)
                if view["state"] in ENDED_STATES:
                    return view
                patience.pause()
            await asyncio.sleep(pauses.pop())


class AsyncCall(Generic[T]):
    """One call of a function; `await call` is its result."""

    def __init__(self, call: Call[T]) -> None:
        self.call = call

    @property
    def id(self) -> str:
        return self.call.id

    async def result(self, timeout: float | None = None) -> T:
        return await asyncio.to_thread(self.call.result, timeout)

    async def stop(self) -> None:
        await asyncio.to_thread(self.call.stop)

    def logs(self) -> AsyncIterator[str]:
        return _iterated(self.call.logs())

    def __await__(self) -> Any:
        return self.result().__await__()


class AsyncFunctions:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    async def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> AsyncCall[T]:
        return AsyncCall(await asyncio.to_thread(self._functions.submit, function, *args, **kwargs))

    async def map(self, function: Callable[[Any], T], inputs: Sequence[Any]) -> Sequence[AsyncCall[T]]:
        calls = await asyncio.to_thread(self._functions.map, function, inputs)
        return [AsyncCall(call) for call in calls]


_END = object()


async def _iterated(items: Iterator[T]) -> AsyncIterator[T]:
    while (item := await asyncio.to_thread(next, items, _END)) is not _END:
        yield item  # type: ignore[misc]
