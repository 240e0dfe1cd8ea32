"""Threads for heavy reading, shared fairly by users.

A task is a generator: each `yield` is a place where another task may go first. Users are served in turn, a slice of
time each, and no user has more than a few threads at once. So neither many requests nor one enormous file of a user
delays the others, and a task whose deadline has passed, or whose caller has left, ends after its slice.

The work within a slice is the generator's own: it yields often, after some hundred kilobytes.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from corral.control.live.worker import Worker, WorkerStopped

T = TypeVar("T")

Steps = Generator[None, None, T]

SLICE_SECONDS = 0.1
#: Heavy reading is done with what the rest of the server leaves.
_NICENESS = 5


class TooManyTasks(Exception):
    """A user has as many tasks as may wait."""


class DeadlinePassed(Exception):
    """The task has taken longer than it may."""


class TaskCancelled(Exception):
    """The task was cancelled before its end."""


class Task(Generic[T]):
    """A generator that runs or waits. `future` gets its result, or the exception that ended it."""

    def __init__(self, user: str, steps: Steps[T], deadline: float | None) -> None:
        self.user = user
        self.steps = steps
        self.deadline = deadline
        self.future: Future[T] = Future()
        # Only the pool ends it: a future that was cancelled from outside takes no result.
        self.future.set_running_or_notify_cancel()
        self.is_cancelled = False

    def cancel(self) -> None:
        """It ends after its present slice, and closes what it holds."""
        self.is_cancelled = True


class FairPool:
    def __init__(
        self,
        name: str,
        *,
        threads: int,
        per_user: int,
        waiting_per_user: int,
        slice_seconds: float = SLICE_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Threads are started with the first task. A user has at most `per_user` of them at once."""
        self._name = name
        self._size = threads
        self._per_user = per_user
        self._waiting_per_user = waiting_per_user
        self._slice_seconds = slice_seconds
        self._monotonic = monotonic
        self._changed = threading.Condition()
        #: those with waiting tasks, in the order in which they are served
        self._waiting: OrderedDict[str, deque[Task[Any]]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._workers: list[Worker] = []
        self._is_closed = False

    def submit(
        self, user: str, steps: Steps[T], *, deadline_seconds: float | None = None, is_limited: bool = True
    ) -> Task[T]:
        """Raises TooManyTasks, unless it is a part of what was begun already; the generator is closed then."""
        deadline = None if deadline_seconds is None else self._monotonic() + deadline_seconds
        task = Task(user, steps, deadline)
        with self._changed:
            if self._is_closed or (is_limited and self._count(user) >= self._waiting_per_user):
                steps.close()
                raise TooManyTasks(user)
            self._waiting.setdefault(user, deque()).append(task)
            self._start_workers()
            self._changed.notify()
        return task

    def close(self) -> None:
        """Nothing more is begun; threads end after their slices, and waiting tasks are cancelled."""
        with self._changed:
            self._is_closed = True
            left = [task for tasks in self._waiting.values() for task in tasks]
            self._waiting.clear()
            self._changed.notify_all()
        for task in left:
            _end_cancelled(task)

    def _count(self, user: str) -> int:
        return len(self._waiting.get(user, ())) + self._running[user]

    def _start_workers(self) -> None:
        while len(self._workers) < self._size:
            name = f"{self._name}-{len(self._workers)}"
            worker = Worker(name, self._run_slice, every_seconds=0.0, at_start=_lower_priority)
            self._workers.append(worker)
            worker.start()

    def _run_slice(self) -> None:
        """One slice of one task. Raises WorkerStopped when the pool is closed."""
        task = self._next()
        is_over = self._slice(task)
        with self._changed:
            self._running[task.user] -= 1
            if not self._running[task.user]:
                del self._running[task.user]
            if not is_over and not self._is_closed:
                self._waiting.setdefault(task.user, deque()).append(task)
                is_over = True
            self._changed.notify()
        if not is_over:
            _end_cancelled(task)

    def _next(self) -> Task[Any]:
        """A task of the user who was served longest ago. Raises WorkerStopped when the pool is closed."""
        with self._changed:
            while not self._is_closed:
                for user, tasks in self._waiting.items():
                    if self._running[user] < self._per_user:
                        task = tasks.popleft()
                        self._waiting.move_to_end(user)
                        if not tasks:
                            del self._waiting[user]
                        self._running[user] += 1
                        return task
                self._changed.wait()
            raise WorkerStopped

    def _slice(self, task: Task[Any]) -> bool:
        """Run the task for a while; whether it is over."""
        until = self._monotonic() + self._slice_seconds
        try:
            while True:
                if task.is_cancelled:
                    _end_cancelled(task)
                    return True
                if task.deadline is not None and self._monotonic() >= task.deadline:
                    task.steps.close()
                    raise DeadlinePassed
                next(task.steps)
                if self._monotonic() >= until:
                    return False
        except StopIteration as end:
            task.future.set_result(end.value)
        except BaseException as error:  # noqa: BLE001 - it is the answer for the caller who waits
            task.future.set_exception(error)
        return True


def _lower_priority() -> None:
    with contextlib.suppress(OSError):
        # On Linux a thread has a niceness of its own.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _end_cancelled(task: Task[Any]) -> None:
    task.steps.close()
    task.future.set_exception(TaskCancelled())
