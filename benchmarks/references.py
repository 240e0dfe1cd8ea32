"""Plain simulations of textbook orders, to compare the scheduler with in the same run.

They share nothing with the scheduler: nodes are counts of free GPUs, and a decision is one walk through a list. Each
reads the same workload, and charges the same cost: a preempted job holds its next GPUs for that long before its work
continues.

- First fit: in the order of arrival, all jobs may pass, on the node with the least room that is enough. No planned
  starts, no preemption.
- Order by score: as first fit, but the jobs of the user with the least recent usage first (the order of
  `fair-share`), in the order of arrival within a user. It holds no GPUs and preempts no job: what a scheduler with that
  order can reach without either.
- EASY: the same, but the first job that waits has a planned start, and later jobs must not delay it. It is given the
  actual run times.
- LAS (least attained service): jobs with less than 3.25 GPU-hours so far come first, then all others; by arrival
  within both. Run times are unknown. Preempts, and moves jobs between nodes at no cost.
- SRSF (shortest remaining service first): least remaining GPU-time first. Run times are known. The same freedoms.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from corral.simulator.workload import Workload

#: how long usage counts in the order by score
SCORE_SECONDS = 6 * 3600.0
#: GPU-seconds of work after which a job is in the second queue of LAS
LAS_GPU_SECONDS = 3.25 * 3600
_ROUNDING = 1e-3


@dataclass(slots=True)
class Ended:
    """A job of a week with its attempts: since when and until when it held its GPUs."""

    number: int
    user: str
    nodes: int
    #: on each node
    gpus: int
    submitted_at: float
    run_seconds: float
    held: list[tuple[float, float]] = field(default_factory=list)
    preemptions: int = 0

    @property
    def total_gpus(self) -> int:
        return self.nodes * self.gpus

    @property
    def completion_seconds(self) -> float:
        return self.held[-1][1] - self.submitted_at

    @property
    def wait_seconds(self) -> float:
        return self.completion_seconds - sum(until - since for since, until in self.held)


def jobs_of(workload: Workload) -> list[Ended]:
    return [
        Ended(
            number=number,
            user=job.user,
            nodes=request.nodes,
            gpus=request.gpus,
            submitted_at=job.submitted_at,
            run_seconds=job.run_seconds,
        )
        for number, (job, request) in enumerate(workload.jobs)
    ]


class _Nodes:
    """How many nodes have how many GPUs free. Which node is which does not matter."""

    def __init__(self, nodes: int, size: int) -> None:
        self.size = size
        self.with_free = [0] * size + [nodes]
        self.free = nodes * size

    def take(self, job: Ended) -> int | None:
        """Take room for the job, on the fullest node that has enough; returns the GPUs that were free there."""
        for level in range(job.gpus, self.size + 1):
            if self.with_free[level] >= job.nodes:
                self.with_free[level] -= job.nodes
                self.with_free[level - job.gpus] += job.nodes
                self.free -= job.total_gpus
                return level
        return None


def first_fit(jobs: Sequence[Ended], nodes: int, size: int) -> list[Ended]:
    return _without_preemption(jobs, nodes, size, plans=False)


def easy(jobs: Sequence[Ended], nodes: int, size: int) -> list[Ended]:
    return _without_preemption(jobs, nodes, size, plans=True)


def _without_preemption(jobs: Sequence[Ended], nodes: int, size: int, *, plans: bool) -> list[Ended]:
    free = [size] * nodes
    running: list[tuple[float, int, tuple[int, ...], int]] = []
    waiting: list[Ended] = []
    coming, place = sorted(jobs, key=lambda job: job.submitted_at), 0
    while place < len(coming) or running:
        now = min(
            coming[place].submitted_at if place < len(coming) else math.inf, running[0][0] if running else math.inf
        )
        while running and running[0][0] <= now:
            _, _, where, gpus = heapq.heappop(running)
            for node in where:
                free[node] += gpus
        while place < len(coming) and coming[place].submitted_at <= now:
            waiting.append(coming[place])
            place += 1
        started, failed = set[int](), set[tuple[int, int]]()
        planned: tuple[float, tuple[int, ...], int] | None = None
        for job in waiting:
            if (job.nodes, job.gpus) in failed:
                continue
            where_now = _room(free, job, planned, now)
            if where_now is None:
                if planned is None and plans:
                    planned = _planned(free, running, job)
                elif planned is None:
                    failed.add((job.nodes, job.gpus))
                continue
            for node in where_now:
                free[node] -= job.gpus
            end = now + job.run_seconds
            job.held.append((now, end))
            heapq.heappush(running, (end, job.number, where_now, job.gpus))
            started.add(job.number)
            if not any(free):
                break
        if started:
            waiting = [job for job in waiting if job.number not in started]
    return list(jobs)


def _room(
    free: Sequence[int], job: Ended, planned: tuple[float, tuple[int, ...], int] | None, now: float
) -> tuple[int, ...] | None:
    """The fullest nodes that have room for the job and, if it would run beyond the planned start, are not part of
    that."""
    shut: tuple[int, ...] = ()
    if planned is not None and now + job.run_seconds > planned[0]:
        shut = planned[1]
    fits = sorted((left, node) for node, left in enumerate(free) if left >= job.gpus and node not in shut)
    return tuple(node for _, node in fits[: job.nodes]) if len(fits) >= job.nodes else None


def _planned(
    free: Sequence[int], running: Sequence[tuple[float, int, tuple[int, ...], int]], job: Ended
) -> tuple[float, tuple[int, ...], int]:
    """When and on which nodes the job has room, by the ends of running jobs."""
    later = list(free)
    for end, _, where, gpus in sorted(running):
        for node in where:
            later[node] += gpus
        fits = [node for node, left in enumerate(later) if left >= job.gpus]
        if len(fits) >= job.nodes:
            return end, tuple(fits[: job.nodes]), job.gpus
    raise ValueError(f"job {job.number} asks for more than all nodes have")


class _Usage:
    """The recent usage of users: GPUs held, with an exponential memory."""

    def __init__(self) -> None:
        self._scores: dict[str, tuple[float, float, float]] = {}

    def at(self, user: str, now: float) -> float:
        value, gpus, since = self._scores.get(user, (0.0, 0.0, now))
        kept = math.exp(-(now - since) / SCORE_SECONDS)
        return value * kept + gpus * (1.0 - kept)

    def change(self, user: str, gpus: int, now: float) -> None:
        held = self._scores.get(user, (0.0, 0.0, now))[1]
        self._scores[user] = (self.at(user, now), held + gpus, now)


def by_score(jobs: Sequence[Ended], nodes: int, size: int) -> list[Ended]:
    """At every arrival and end, jobs start in the order of their users' usage; all jobs may pass."""
    free, usage = [size] * nodes, _Usage()
    running: list[tuple[float, int, Ended, tuple[int, ...]]] = []
    #: by user, then by the GPUs of a node and the number of nodes: jobs in the order of arrival
    waiting: dict[str, dict[tuple[int, int], deque[Ended]]] = {}
    coming, place = sorted(jobs, key=lambda job: job.submitted_at), 0
    while place < len(coming) or running:
        arrives = coming[place].submitted_at if place < len(coming) else math.inf
        now = min(arrives, running[0][0] if running else math.inf)
        while running and running[0][0] <= now:
            _, _, job, where = heapq.heappop(running)
            for node in where:
                free[node] += job.gpus
            usage.change(job.user, -job.total_gpus, now)
        while place < len(coming) and coming[place].submitted_at <= now:
            job = coming[place]
            waiting.setdefault(job.user, {}).setdefault((job.nodes, job.gpus), deque()).append(job)
            place += 1
        failed: set[tuple[int, int]] = set()
        for user in sorted(waiting, key=lambda one: (usage.at(one, now), one)):
            while shapes := [one for one in waiting[user] if one not in failed]:
                shape = min(shapes, key=lambda one: (waiting[user][one][0].submitted_at, waiting[user][one][0].number))
                job = waiting[user][shape][0]
                found = _room(free, job, None, now)
                if found is None:
                    failed.add(shape)
                    continue
                waiting[user][shape].popleft()
                if not waiting[user][shape]:
                    del waiting[user][shape]
                for node in found:
                    free[node] -= job.gpus
                usage.change(user, job.total_gpus, now)
                job.held.append((now, now + job.run_seconds))
                heapq.heappush(running, (now + job.run_seconds, job.number, job, found))
    return list(jobs)


@dataclass(slots=True)
class _Live:
    """A job that has not ended, under an order that preempts."""

    job: Ended
    left: float
    attained: float = 0.0
    #: since when it holds GPUs, and since when its work goes on; None while it waits
    since: float | None = None
    works_from: float = 0.0
    key: tuple[float, ...] = ()

    def worked(self, now: float) -> float:
        return 0.0 if self.since is None else max(0.0, now - self.works_from)


#: the sort key of a job, from its GPU-seconds so far and its remaining seconds
Order = Callable[[Ended, float, float], tuple[float, ...]]


def least_attained(job: Ended, attained: float, left: float) -> tuple[float, ...]:
    return (float(attained >= LAS_GPU_SECONDS - _ROUNDING), job.submitted_at, job.number)


def least_remaining(job: Ended, attained: float, left: float) -> tuple[float, ...]:
    return (left * job.total_gpus, job.submitted_at, job.number)


def las(jobs: Sequence[Ended], nodes: int, size: int, cost: float) -> list[Ended]:
    return preemptive(jobs, nodes, size, least_attained, cost, (LAS_GPU_SECONDS,))


def srsf(jobs: Sequence[Ended], nodes: int, size: int, cost: float) -> list[Ended]:
    return preemptive(jobs, nodes, size, least_remaining, cost)


def preemptive(
    jobs: Sequence[Ended], nodes: int, size: int, order: Order, cost: float, levels: Sequence[float] = ()
) -> list[Ended]:
    """At every arrival, end and change of level the first jobs of the order that fit together run."""
    coming, place = sorted(jobs, key=lambda job: job.submitted_at), 0
    running: list[_Live] = []
    waiting: list[tuple[tuple[float, ...], int]] = []
    lives: dict[int, _Live] = {}
    now = -math.inf
    while place < len(coming) or running:
        now = min(
            coming[place].submitted_at if place < len(coming) else math.inf,
            min((one.works_from + one.left for one in running), default=math.inf),
            min((at for one in running if (at := _next_level(one, levels, now)) is not None), default=math.inf),
        )
        still = []
        for one in running:
            if one.works_from + one.left <= now:
                assert one.since is not None
                one.job.held.append((one.since, now))
                del lives[one.job.number]
            else:
                still.append(one)
        running = still
        while place < len(coming) and coming[place].submitted_at <= now:
            job = coming[place]
            lives[job.number] = one = _Live(job=job, left=job.run_seconds)
            one.key = order(job, 0.0, job.run_seconds)
            insort(waiting, (one.key, job.number))
            place += 1
        running = _decide(running, waiting, lives, _Nodes(nodes, size), order, now, cost)
    return list(jobs)


def _decide(
    running: Sequence[_Live],
    waiting: list[tuple[tuple[float, ...], int]],
    lives: dict[int, _Live],
    room: _Nodes,
    order: Order,
    now: float,
    cost: float,
) -> list[_Live]:
    keyed = []
    for one in running:
        worked = one.worked(now)
        keyed.append((order(one.job, one.attained + worked * one.job.total_gpus, one.left - worked), one.job.number))
    keyed.sort()
    chosen: dict[int, _Live] = {}
    failed: set[tuple[int, int]] = set()
    for _, number in _merged(keyed, waiting):
        one = lives[number]
        shape = (one.job.nodes, one.job.gpus)
        if shape in failed:
            continue
        if room.take(one.job) is None:
            failed.add(shape)
        else:
            chosen[number] = one
            if not room.free:
                break
    for key, number in keyed:
        if number not in chosen:
            _requeue(lives[number], now)
            lives[number].key = key
            insort(waiting, (key, number))
    for number, one in chosen.items():
        if one.since is None:
            del waiting[bisect_left(waiting, (one.key, number))]
            one.since = now
            one.works_from = now + (cost if one.job.preemptions else 0.0)
    return list(chosen.values())


def _requeue(one: _Live, now: float) -> None:
    assert one.since is not None
    worked = one.worked(now)
    one.left -= worked
    one.attained += worked * one.job.total_gpus
    one.job.held.append((one.since, now))
    one.job.preemptions += 1
    one.since = None


def _next_level(one: _Live, levels: Sequence[float], now: float) -> float | None:
    """When a running job reaches the next level of GPU-seconds."""
    for level in levels:
        at = one.works_from + (level - one.attained) / one.job.total_gpus
        if at > now:
            return at
    return None


def _merged(
    first: Sequence[tuple[tuple[float, ...], int]], second: Sequence[tuple[tuple[float, ...], int]]
) -> Iterator[tuple[tuple[float, ...], int]]:
    yield from heapq.merge(first, second)
