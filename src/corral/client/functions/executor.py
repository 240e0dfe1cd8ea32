"""A `concurrent.futures.Executor` whose calls are jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from corral.client.functions.calls import Call, Functions
from corral.client.http.errors import ApiProblem, ClientError, ServerUnreachable
from corral.client.http.streams import PATIENCE_SECONDS
from corral.client.jobs.jobs import ENDED_STATES

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import JobCreate, JobView

T = TypeVar("T")
P = ParamSpec("P")

POLL_SECONDS = 0.5
#: More calls than these are looked up by a list of jobs instead of one by one.
FEW = 8


class JobFuture(Future[T]):
    """A future whose job is stopped when it is cancelled before it runs."""

    def __init__(self, call: Call[T]) -> None:
        super().__init__()
        self.call = call

    def cancel(self) -> bool:
        was_cancelled = self.cancelled()
        if not super().cancel():
            return False
        if not was_cancelled:
            self.call.stop()
        return True


class JobExecutor(Executor):
    """
    with corral.executor(gpus=1, time="1h") as executor:
        losses = list(executor.map(train, [0.1, 0.01]))

    `map` submits one array. A thread follows the jobs; jobs continue if the program ends first.
    """

    def __init__(self, client: Client, settings: JobCreate, python: str | None = None) -> None:
        self._client = client
        self._functions = Functions(client, settings, python)
        self._pending: dict[str, JobFuture[Any]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._unreachable_seconds = 0.0
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self._check_open()
        return self._follow([self._functions.submit(function, *args, **kwargs)])[0]

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[T]:
        """Results in the order of the inputs. `chunksize` is ignored: each call is a job."""
        self._check_open()
        futures = self._follow(self._functions.starmap(fn, zip(*iterables, strict=False)))
        return (future.result(timeout) for future in futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._closed = True
            futures = list(self._pending.values())
            self._changed.notify_all()
        if cancel_futures:
            for future in futures:
                future.cancel()
        if wait and self._thread is not None:
            self._thread.join()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("cannot submit a call after the executor was shut down")

    def _follow(self, calls: list[Call[T]]) -> list[JobFuture[T]]:
        futures = [JobFuture(call) for call in calls]
        with self._changed:
            self._pending.update({future.call.id: future for future in futures})
            if self._thread is None and futures:
                self._thread = threading.Thread(target=self._watch, name="corral-executor", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return futures

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._closed:
                    self._changed.wait()
                if not self._pending:
                    return
                pending = dict(self._pending)
            try:
                self._look(pending)
                self._unreachable_seconds = 0.0
            except ServerUnreachable as error:
                self._lost(pending, error)
            with self._changed:
                self._changed.wait(POLL_SECONDS)

    def _look(self, pending: dict[str, JobFuture[Any]]) -> None:
        for view in self._views(pending):
            future = pending[view["id"]]
            future.call.job = view
            if view["state"] in ("starting", "running") and not future.running():
                future.set_running_or_notify_cancel()
            elif view["state"] in ENDED_STATES:
                _finish(future)
                self._forget(view["id"])

    def _views(self, pending: dict[str, JobFuture[Any]]) -> Iterator[JobView]:
        if len(pending) <= FEW:
            for job in pending:
                yield self._client.jobs.get(job)
            return
        first = min(future.call.job["created_at"] for future in pending.values())
        me = next(iter(pending.values())).call.job["user"]
        for view in self._client.jobs.list(user=me, since=first):
            if view["id"] in pending:
                yield view

    def _lost(self, pending: dict[str, JobFuture[Any]], error: ServerUnreachable) -> None:
        self._unreachable_seconds += POLL_SECONDS
        if self._unreachable_seconds < PATIENCE_SECONDS:
            return
        for job, future in pending.items():
            if future.running() or future.set_running_or_notify_cancel():
                future.set_exception(error)
            self._forget(job)

    def _forget(self, job: str) -> None:
        with self._changed:
            self._pending.pop(job, None)


def _finish(future: JobFuture[Any]) -> None:
    if future.cancelled() or not (future.running() or future.set_running_or_notify_cancel()):
        return
    try:
        value = future.call.result()
    except ServerUnreachable:
        raise
    except (ApiProblem, ClientError) as error:
        future.set_exception(error)
    except Exception as error:  # noqa: BLE001 the function's own, passed to the caller of the future
        future.set_exception(error)
    else:
        future.set_result(value)
