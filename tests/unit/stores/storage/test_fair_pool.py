"""Heavy reading shared fairly by users."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator

import pytest

from corral.stores.storage.fair_pool import DeadlinePassed, FairPool, TaskCancelled, TooManyTasks

#: Far longer than anything here takes.
PATIENCE = 30.0


class Clock:
    """Each look is a second later, so that every step ends a slice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0

    def __call__(self) -> float:
        with self._lock:
            self._now += 1.0
            return self._now


@pytest.fixture
def pool() -> Iterator[FairPool]:
    made = FairPool("test", threads=2, per_user=1, waiting_per_user=3, monotonic=Clock())
    yield made
    made.close()


def endless(closed: threading.Event | None = None) -> Generator[None, None, None]:
    try:
        while True:
            yield
    finally:
        if closed is not None:
            closed.set()


def counted(number: int) -> Generator[None, None, int]:
    for _ in range(number):
        yield
    return number


def test_a_task_gives_what_it_returns_or_raises(pool: FairPool) -> None:
    def broken() -> Generator[None, None, None]:
        yield
        raise OSError(5, "Input/output error")

    assert pool.submit("ann", counted(5)).future.result(PATIENCE) == 5
    with pytest.raises(OSError, match="Input/output"):
        pool.submit("ann", broken()).future.result(PATIENCE)


def test_endless_tasks_of_one_user_do_not_hold_up_another(pool: FairPool) -> None:
    for _ in range(3):
        pool.submit("eve", endless())
    assert pool.submit("ann", counted(100)).future.result(PATIENCE) == 100


def test_a_user_with_endless_tasks_still_gets_a_short_one_done(pool: FairPool) -> None:
    pool.submit("eve", endless())
    pool.submit("eve", endless())
    assert pool.submit("eve", counted(10)).future.result(PATIENCE) == 10


def test_a_user_has_a_bounded_number_of_tasks(pool: FairPool) -> None:
    closed = threading.Event()
    for _ in range(3):
        pool.submit("eve", endless())
    refused = endless(closed)
    next(refused)
    with pytest.raises(TooManyTasks):
        pool.submit("eve", refused)
    assert closed.is_set(), "what was refused holds nothing open"
    assert pool.submit("eve", counted(1), is_limited=False).future.result(PATIENCE) == 1


def test_a_cancelled_task_closes_what_it_holds(pool: FairPool) -> None:
    closed = threading.Event()
    task = pool.submit("eve", endless(closed))
    task.cancel()
    with pytest.raises(TaskCancelled):
        task.future.result(PATIENCE)


def test_a_task_ends_at_its_deadline(pool: FairPool) -> None:
    closed = threading.Event()
    task = pool.submit("eve", endless(closed), deadline_seconds=50.0)
    with pytest.raises(DeadlinePassed):
        task.future.result(PATIENCE)
    assert closed.is_set()


def test_closing_ends_what_waits_and_what_runs() -> None:
    pool = FairPool("test", threads=1, per_user=1, waiting_per_user=3)
    tasks = [pool.submit("eve", endless()) for _ in range(3)]
    pool.close()
    for task in tasks:
        with pytest.raises(TaskCancelled):
            task.future.result(PATIENCE)
    with pytest.raises(TooManyTasks):
        pool.submit("eve", endless())
