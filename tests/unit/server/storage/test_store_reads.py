"""Reads of the store: one user with very many slow ones does not keep the reads of others waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from corral.server.http.problems import Problem
from corral.server.storage.store_reads import StoreReads, current_user


async def of(user: str, reads: StoreReads, read: object) -> object:
    current_user.set(user)
    assert callable(read)
    return await reads.run(read)


def test_slow_reads_of_one_user_leave_threads_to_others() -> None:
    go_on = threading.Event()

    async def story() -> None:
        reads = StoreReads(threads=4, per_user=2)
        try:
            slow = [asyncio.create_task(of("eve", reads, go_on.wait)) for _ in range(20)]
            assert await asyncio.wait_for(of("ann", reads, lambda: "answer"), 30) == "answer"
            # Clients that leave do not get more threads: the reads of those who left still run.
            for one in slow:
                one.cancel()
            again = [asyncio.create_task(of("eve", reads, go_on.wait)) for _ in range(20)]
            assert await asyncio.wait_for(of("ann", reads, lambda: "answer"), 30) == "answer"
            assert await asyncio.wait_for(of("bob", reads, lambda: "answer"), 30) == "answer"
            go_on.set()
            assert await asyncio.gather(*again) == [True] * 20
            assert all(
                isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*slow, return_exceptions=True)
            )
            while reads.waiting:
                await asyncio.sleep(0.01)
        finally:
            go_on.set()
            reads.close()

    asyncio.run(story())


def test_an_error_of_a_read_is_the_callers() -> None:
    async def story() -> None:
        reads = StoreReads()
        with pytest.raises(ZeroDivisionError):
            await of("ann", reads, lambda: 1 // 0)
        reads.close()

    asyncio.run(story())


def test_a_read_that_waits_when_the_server_stops_is_refused() -> None:
    go_on = threading.Event()

    async def story() -> None:
        reads = StoreReads(threads=1)
        running, waiting = (asyncio.create_task(of(user, reads, go_on.wait)) for user in ("ann", "bob"))
        while reads.waiting < 2:
            await asyncio.sleep(0)
        reads.close()
        go_on.set()
        assert await running is True
        with pytest.raises(Problem) as refusal:
            await waiting
        assert refusal.value.status == 503

    asyncio.run(story())
