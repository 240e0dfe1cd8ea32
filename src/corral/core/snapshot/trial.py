"""What if: resources taken, held, given back or promised for a while, in a picture that is as before afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from corral.core.model import Allocation, Job
from corral.core.snapshot.held_resources import Usage
from corral.core.snapshot.node_index import Fleet


class Trial:
    """What is supposed within `snapshot.trial()`."""

    def __init__(self, fleet: Fleet, usage: Usage) -> None:
        self._fleet = fleet
        self._usage = usage
        self._last_place = self._fleet.last_place
        #: a job that holds something from now on, and what it held instead before
        self._supposed: list[tuple[Job, Allocation, Job | None]] = []
        self._held: dict[str, Allocation] = {}
        #: what is kept of what a job will start on when others have given way
        self._promised: list[tuple[Job, Allocation]] = []

    def start(self, job: Job, allocation: Allocation) -> None:
        """Suppose that the job holds this from now on."""
        self._fleet.take(allocation)
        self._fleet.last_place = self._fleet.place_of[allocation.grants[-1].node]
        self._usage.add(job)
        self._supposed.append((job, allocation, None))

    def resize(self, job: Job, resized: Job) -> None:
        """Suppose that a job which holds something, or is supposed to, holds and asks for something else."""
        assert job.allocation is not None
        assert resized.allocation is not None
        self._swap(job, job.allocation, resized, resized.allocation)
        self._supposed.append((resized, resized.allocation, job))

    def hold(self, job_id: str, allocation: Allocation) -> None:
        """Suppose that this is kept for a job that waits, and nobody else can have it."""
        self._fleet.take(allocation)
        self._held[job_id] = allocation

    def lift(self, job_id: str) -> None:
        """Suppose no longer that anything is kept for that job."""
        self._fleet.give_back(self._held.pop(job_id))

    def promise(self, job: Job, held: Allocation) -> None:
        """Suppose that the job starts as soon as others have given way: nobody else can have what is free already of
        what it gets, and it counts as if it had it all."""
        self._fleet.take(held)
        self._usage.add(job)
        self._promised.append((job, held))

    @contextmanager
    def without(self, allocations: Sequence[Allocation], gone: Iterable[Job] = ()) -> Iterator[None]:
        """Suppose within that these have ended, and that these jobs hold nothing any more."""
        gone = list(gone)
        for allocation in allocations:
            self._fleet.give_back(allocation)
        for job in gone:
            self._usage.remove(job)
        try:
            yield
        finally:
            for job in gone:
                self._usage.add(job)
            for allocation in allocations:
                self._fleet.take(allocation)

    @contextmanager
    def taken(self, allocations: Sequence[Allocation]) -> Iterator[None]:
        """Suppose within that these are given out."""
        for allocation in allocations:
            self._fleet.take(allocation)
        try:
            yield
        finally:
            for allocation in allocations:
                self._fleet.give_back(allocation)

    def undo(self) -> None:
        for job, held in self._promised:
            self._fleet.give_back(held)
            self._usage.remove(job)
        for allocation in self._held.values():
            self._fleet.give_back(allocation)
        # The latest first: what one gave back, another may have got.
        for job, allocation, before in reversed(self._supposed):
            if before is None:
                self._fleet.give_back(allocation)
                self._usage.remove(job)
            else:
                assert before.allocation is not None
                self._swap(job, allocation, before, before.allocation)
        self._fleet.last_place = self._last_place

    def _swap(self, job: Job, allocation: Allocation, instead: Job, its: Allocation) -> None:
        self._fleet.give_back(allocation)
        self._usage.remove(job)
        self._fleet.take(its)
        self._usage.add(instead)
