"""The expected releases: when the allocations of a snapshot end (`AllocationEnds`), and what ending jobs release
(`ExpectedReleases`).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from corral.core.model import Allocation, Grant, Job

_NEXT_FEW = 100

#: The end of an allocation, the serial number of its job (oldest first among equals), and the job's id. With a time
#: limit the end is the latest possible one, without a time limit the predicted one.
Release = tuple[float, int, str]


class AllocationEnds:
    """The ends of all allocations of a snapshot. `revision` says which state of the snapshot is asked about."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        #: soonest first
        self.known: list[Release] = []
        self._jobs = jobs
        #: a cache: jobs that run longer than predicted, as of a revision and a time
        self._overdue: tuple[int, float, list[Release], int] = (-1, 0.0, [], 0)
        #: a cache: the next end that is a prediction, as of a revision and a time
        self._next_likely: tuple[int, float, float | None] = (-1, 0.0, None)

    def add(self, job: Job) -> None:
        insort(self.known, (job.likely_end, job.serial, job.id))

    def remove(self, job: Job) -> None:
        del self.known[bisect_left(self.known, (job.likely_end, job.serial, job.id))]

    def coming(self, now: float, revision: int) -> Iterator[Release]:
        """The ends from now on. A job that runs longer than predicted gets a new expected end."""
        overdue, since = self._find_overdue(now, revision)
        if not overdue:
            return iter(self.known)
        return heapq.merge(overdue, islice(self.known, since, None))

    def overrunning(self, now: float, revision: int) -> list[Job]:
        """Running jobs without a time limit that run longer than predicted."""
        overdue, _ = self._find_overdue(now, revision)
        return [job for _, _, job_id in overdue if (job := self._jobs[job_id]).time_limit_seconds is None]

    def next_likely(self, now: float, revision: int) -> float | None:
        """The next end that is a prediction, if it is among the next few."""
        if self._next_likely[:2] != (revision, now):
            self._next_likely = (revision, now, self._find_next_likely(now, revision))
        return self._next_likely[2]

    def _find_next_likely(self, now: float, revision: int) -> float | None:
        _, since = self._find_overdue(now, revision)
        for end, _, job_id in islice(self.known, since, since + _NEXT_FEW):
            if math.isfinite(end) and self._jobs[job_id].time_limit_seconds is None:
                return end
        return None

    def _find_overdue(self, now: float, revision: int) -> tuple[list[Release], int]:
        known_revision, at, overdue, since = self._overdue
        if (known_revision, at) != (revision, now):
            since = bisect_right(self.known, now, key=lambda release: release[0])
            late = (
                (self._jobs[job_id].likely_end_after(now), serial, job_id) for _, serial, job_id in self.known[:since]
            )
            overdue = sorted(late)
            self._overdue = (revision, now, overdue, since)
        return overdue, since


class ExpectedReleases:
    """Resources that jobs which are being preempted or moved will release, less those that are promised already. Only
    the rest is kept, so that a cycle in which many jobs leave counts each of them once."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        #: by GPU: its node, and the thousandths of it
        self._gpus: dict[str, tuple[str, int]] = {}
        #: CPUs and memory by node
        self._hosts: dict[str, tuple[int, int]] = {}
        for job in jobs:
            self.add(job)

    @property
    def has_gpus(self) -> bool:
        return bool(self._gpus)

    def add(self, job: Job) -> None:
        """Count a job that leaves. A job that is moved keeps its next allocation."""
        for grant in job.allocation.grants if job.allocation is not None else ():
            self._count(grant, 1)
        for grant in job.next_allocation.grants if job.next_allocation is not None else ():
            self._count(grant, -1)

    def use(self, allocation: Allocation, held: Allocation) -> None:
        """Note that the allocation is promised to a job. `held` of it is free already; the rest is yet to be
        released."""
        for grant in allocation.grants:
            self._count(grant, -1)
        for grant in held.grants:
            self._count(grant, 1)

    def left(self) -> Allocation:
        """The resources that are promised to no job."""
        gpus = [Grant(node=node, gpus=(gpu,), gpu_milli=milli) for gpu, (node, milli) in self._gpus.items()]
        hosts = [
            Grant(node=node, cpu_milli=cpu_milli, memory_bytes=memory_bytes)
            for node, (cpu_milli, memory_bytes) in self._hosts.items()
        ]
        return Allocation(grants=(*gpus, *hosts))

    def _count(self, grant: Grant, sign: int) -> None:
        for gpu in grant.gpus:
            milli = self._gpus.pop(gpu, (grant.node, 0))[1] + sign * grant.gpu_milli
            if milli:
                self._gpus[gpu] = (grant.node, milli)
        cpu_milli, memory_bytes = self._hosts.pop(grant.node, (0, 0))
        cpu_milli, memory_bytes = cpu_milli + sign * grant.cpu_milli, memory_bytes + sign * grant.memory_bytes
        if cpu_milli or memory_bytes:
            self._hosts[grant.node] = (cpu_milli, memory_bytes)
