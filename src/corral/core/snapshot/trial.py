"""A trial: resources of a snapshot are taken, held, released or promised temporarily, and restored afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from corral.core.model import Allocation, Job
from corral.core.snapshot.changes import last_node_of
from corral.core.snapshot.held_resources import Usage
from corral.core.snapshot.node_index import Fleet


class Trial:
    """The temporary changes within `snapshot.trial()`."""

    def __init__(self, fleet: Fleet, usage: Usage) -> None:
        self._fleet = fleet
        self._usage = usage
        self._last = self._fleet.last_place, self._fleet.last_position
        #: jobs with their new allocation, and the job as it was before; None if it held nothing
        self._applied: list[tuple[Job, Allocation, Job | None]] = []
        self._held: dict[str, Allocation] = {}
        #: jobs that start when preempted jobs have left, and the free resources that are held for them
        self._promised: list[tuple[Job, Allocation]] = []

    def start(self, job: Job, allocation: Allocation) -> None:
        """The job holds this allocation from now on."""
        self._fleet.take(allocation)
        last = last_node_of(allocation)
        self._fleet.put_last(last.id, last.gpu)
        self._usage.add(job)
        self._applied.append((job, allocation, None))

    def resize(self, job: Job, resized: Job) -> None:
        """Replaces the resources and the request of a job that holds resources."""
        assert job.allocation is not None
        assert resized.allocation is not None
        self._swap(job, job.allocation, resized, resized.allocation)
        self._applied.append((resized, resized.allocation, job))

    def hold(self, job_id: str, allocation: Allocation) -> None:
        """Hold the resources for a waiting job: no other job can get them."""
        self._fleet.take(allocation)
        self._held[job_id] = allocation

    def lift(self, job_id: str) -> None:
        """Stop holding resources for that job."""
        self._fleet.give_back(self._held.pop(job_id))

    def promise(self, job: Job, held: Allocation) -> None:
        """The job starts as soon as preempted jobs have left: the free part of its allocation is held, and limits count
        the job as if it had started."""
        self._fleet.take(held)
        self._usage.add(job)
        self._promised.append((job, held))

    @contextmanager
    def without(self, allocations: Sequence[Allocation], gone: Iterable[Job] = ()) -> Iterator[None]:
        """Within the block these allocations are free, and the jobs in `gone` do not count for limits."""
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
        """Within the block these allocations are taken."""
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
        # In reverse order: resources that one job released may have been given to a later one.
        for job, allocation, before in reversed(self._applied):
            if before is None:
                self._fleet.give_back(allocation)
                self._usage.remove(job)
            else:
                assert before.allocation is not None
                self._swap(job, allocation, before, before.allocation)
        self._fleet.last_place, self._fleet.last_position = self._last

    def _swap(self, job: Job, allocation: Allocation, instead: Job, its: Allocation) -> None:
        self._fleet.give_back(allocation)
        self._usage.remove(job)
        self._fleet.take(its)
        self._usage.add(instead)
