"""What `squeue --start` says of the same workload: a plain simulation of Slurm's backfill, and its planned starts.

Jobs are in the order of arrival. The first one that does not fit has a planned start, and later ones start if they do
not delay it. Nobody gives a time limit, so that all have the limit of the partition: the longest run of the workload,
in whole hours. The planned start of a waiting job is where the same backfill starts it if every job, running or
waiting, takes as long as its limit, and no further jobs come. Like Slurm, only the first 500 waiting jobs have one. The
workload itself runs by the same backfill, with the actual run times: these are Slurm's estimates of Slurm's starts.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.references import Ended
from corral.core.scheduling.forecast.accuracy import HORIZONS, PastEstimate, horizon_of

#: `bf_max_job_test`
MOST_PLANNED = 500
HOUR = 3600.0


#: The end of a running job as far as it is known, its number, its nodes, and the GPUs on each.
Running = tuple[float, int, tuple[int, ...], int]


@dataclass(slots=True)
class _Cluster:
    """The free GPUs of each node, and what runs: its end, as far as it is known here."""

    free: list[int]
    running: list[Running] = field(default_factory=list)

    def release_until(self, now: float) -> None:
        while self.running and self.running[0][0] <= now:
            _, _, where, gpus = heapq.heappop(self.running)
            for node in where:
                self.free[node] += gpus

    def start(self, job: Ended, where: tuple[int, ...], end: float) -> None:
        for node in where:
            self.free[node] -= job.gpus
        heapq.heappush(self.running, (end, job.number, where, job.gpus))


def planned_and_started(
    jobs: Sequence[Ended], nodes: int, size: int, every: int, most_at_once: int
) -> tuple[list[PastEstimate], float]:
    """The estimates with their outcomes, made at every so many arrivals, and when the last job ends. A waiting job is
    estimated again when its start has come nearer by a horizon."""
    limit = math.ceil(max(job.run_seconds for job in jobs) / HOUR) * HOUR
    cluster, since = _Cluster([size] * nodes), dict[int, float]()
    waiting: list[Ended] = []
    shown: list[PastEstimate] = []
    still_open: dict[int, list[int]] = {}
    coming, place, arrived, now = sorted(jobs, key=lambda job: job.submitted_at), 0, 0, 0.0
    while place < len(coming) or cluster.running:
        arrives = coming[place].submitted_at if place < len(coming) else math.inf
        now = min(arrives, cluster.running[0][0] if cluster.running else math.inf)
        cluster.release_until(now)
        fresh = []
        while place < len(coming) and coming[place].submitted_at <= now:
            fresh.append(coming[place])
            place += 1
        waiting += fresh
        arrived += len(fresh)
        by_limit = _with_limits(cluster.running, since, limit, now)
        for job, where in list(_started(cluster.free, by_limit, waiting, limit, now)):
            cluster.start(job, where, now + job.run_seconds)
            since[job.number] = now
            for number in still_open.pop(job.number, ()):
                shown[number] = replace(shown[number], started_at=now)
        waiting = [job for job in waiting if job.number not in since]
        left = [job for job in fresh if job.number not in since]
        if not left or arrived < every:
            continue
        arrived = 0
        starts = _planned_starts(cluster, since, waiting[:MOST_PLANNED], limit, now)
        picked = {job.number for job in left[:: max(1, len(left) // most_at_once)]}
        for number in sorted(picked | still_open.keys()):
            at = starts.get(number)
            before = [horizon_of(shown[one].p50 - shown[one].made_at) for one in still_open.get(number, ())]
            if at is None or horizon_of(at - now) >= min(before, default=len(HORIZONS)):
                continue
            still_open.setdefault(number, []).append(len(shown))
            shown.append(
                PastEstimate(
                    job_id=str(number), attempt=1, queue="", made_at=now, p50=at, p90=at, raw_p50=at, raw_p90=at
                )
            )
    return shown, now


def _planned_starts(
    cluster: _Cluster, since: dict[int, float], waiting: Sequence[Ended], limit: float, now: float
) -> dict[int, float]:
    """By waiting job: when it starts if all jobs take as long as their limit."""
    running = _with_limits(cluster.running, since, limit, now)
    heapq.heapify(running)
    ahead, starts, left = _Cluster(list(cluster.free), running), dict[int, float](), list(waiting)
    while left and ahead.running:
        now = ahead.running[0][0]
        ahead.release_until(now)
        for job, where in list(_started(ahead.free, ahead.running, left, limit, now)):
            ahead.start(job, where, now + limit)
            starts[job.number] = now
        left = [job for job in left if job.number not in starts]
    return starts


def _with_limits(running: Sequence[Running], since: dict[int, float], limit: float, now: float) -> list[Running]:
    """The same with their ends by the limit."""
    return [(max(now, since[number] + limit), number, where, gpus) for _, number, where, gpus in running]


def _started(
    free: Sequence[int],
    running: Sequence[Running],
    waiting: Sequence[Ended],
    limit: float,
    now: float,
) -> Iterator[tuple[Ended, tuple[int, ...]]]:
    """The jobs that start now, with their nodes. All have the same limit: what fails once fails for its whole shape."""
    rest, failed, shut = list(free), set[tuple[int, int]](), frozenset[int]()
    ends = list(running)
    is_planned = False
    for job in waiting:
        if (job.nodes, job.gpus) in failed:
            continue
        fits = sorted((left, node) for node, left in enumerate(rest) if left >= job.gpus and node not in shut)
        if len(fits) < job.nodes:
            failed.add((job.nodes, job.gpus))
            if not is_planned:
                is_planned, shut = True, _planned_nodes(rest, ends, job, now + limit)
            continue
        where = tuple(node for _, node in fits[: job.nodes])
        for node in where:
            rest[node] -= job.gpus
        ends.append((now + limit, job.number, where, job.gpus))
        yield job, where


def _planned_nodes(free: Sequence[int], ends: Sequence[Running], job: Ended, until: float) -> frozenset[int]:
    """The nodes of a planned start that a job which runs until then would delay."""
    later = list(free)
    for end, _, where, gpus in sorted(ends):
        for node in where:
            later[node] += gpus
        fits = [node for node, left in enumerate(later) if left >= job.gpus]
        if len(fits) >= job.nodes:
            return frozenset(fits[: job.nodes]) if end < until else frozenset()
    raise ValueError(f"job {job.number} asks for more than all nodes have")
