"""Counts of jobs: those of all jobs are kept, and only a filter is counted by the store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.records import EVERY_JOB, JobFilter
from corral.control.system.policies import Policies
from corral.core.model import JobState
from corral.server.http.context import ServerContext
from corral.server.routes.jobs.jobs import count_jobs

OPERATOR = Caller(name="operator", is_operator=True)


class Asked:
    """Stands for the server: answers from a state, and counts the queries of the store."""

    def __init__(self, counts: Counter[JobState] | None) -> None:
        self.state = State(Policies())
        self.state.job_counts = counts
        self.queries = 0

    async def inspect(self, read: Callable[[State], Any]) -> Any:
        return read(self.state)

    async def read(self, query: Callable[[Any], Any]) -> dict[str, int]:
        self.queries += 1
        return {"queued": 3}

    def total(self, where: JobFilter) -> int:
        return asyncio.run(count_jobs(OPERATOR, cast("ServerContext", self), where)).total


def test_all_jobs_are_not_counted_by_the_store() -> None:
    server = Asked(Counter({JobState.COMPLETED: 1_000_000, JobState.RUNNING: 5}))
    assert server.total(EVERY_JOB) == 1_000_005
    assert server.queries == 0
    assert server.total(JobFilter(text="train")) == 3
    assert server.queries == 1


def test_a_standby_asks_the_store() -> None:
    server = Asked(None)
    assert server.total(EVERY_JOB) == 3
    assert server.queries == 1
