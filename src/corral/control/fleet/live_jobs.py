"""Sums over all live jobs that follow the changes of the snapshot: by state, queue, user, kind and GPU model.

A change costs one job. Only the list of waiting times is put in order again when it is read, and then only if a job has
begun or ceased to wait since.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from corral.core.model import Job, JobKind, JobState
from corral.core.snapshot.changes import Change, DropJob, PutJob
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: The model of a job that waits for GPUs of any model.
ANY_MODEL = "*"
#: Entries of jobs that wait no more that a queue may have, beside as many as it has jobs.
_SPARE = 1000
#: A job kind and a GPU model: the one that the job holds, or the first that it asks for; "" without GPUs.
KindModel = tuple[JobKind, str]


@dataclass(slots=True)
class Sums:
    """Jobs of one kind and model. Running jobs are those that hold resources."""

    running: int = 0
    queued: int = 0
    #: GPUs that the running jobs ask for
    running_milli: int = 0
    queued_milli: int = 0

    def add(self, job: Job, sign: int) -> None:
        if job.state is JobState.QUEUED:
            self.queued += sign
            self.queued_milli += sign * job.request.total_gpu_milli
        else:
            self.running += sign
            self.running_milli += sign * job.request.total_gpu_milli

    def join(self, other: Sums) -> None:
        self.running += other.running
        self.queued += other.queued
        self.running_milli += other.running_milli
        self.queued_milli += other.queued_milli


@dataclass(slots=True)
class QueueSums:
    running: int = 0
    length: int = 0
    #: GPUs that its jobs hold
    held_milli: int = 0
    #: since when each job waited, and its id; jobs that wait no more are removed when they come to the front
    waiting: list[tuple[float, str]] = field(default_factory=list)


class LiveJobs:
    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._jobs: dict[str, Job] = {}
        #: GPUs that all live jobs ask for
        self.asked_milli = 0
        self.states: Counter[tuple[str, JobState]] = Counter()
        self.held_milli: Counter[str] = Counter()
        self.queues: dict[str, QueueSums] = {}
        self._by_user: dict[str, dict[KindModel, Sums]] = {}
        self._all: dict[KindModel, Sums] = {}
        self._waits: list[float] = []
        self._begun: list[float] = []
        self._ceased: Counter[float] = Counter()
        for job in snapshot.jobs.values():
            self._enter(job)

    def follow(self, change: Change) -> None:
        match change:
            case PutJob(job=job):
                self._leave(job.id)
                self._enter(job)
            case DropJob(id=job_id):
                self._leave(job_id)

    def _enter(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._count(job, 1)
        if job.state is JobState.QUEUED and job.queued_at is not None:
            self._begun.append(job.queued_at)
            queue = self.queues[job.queue]
            heapq.heappush(queue.waiting, (job.queued_at, job.id))
            if len(queue.waiting) > 2 * queue.length + _SPARE:
                queue.waiting = [entry for entry in queue.waiting if self._waits_as(entry, job.queue)]
                heapq.heapify(queue.waiting)

    def _leave(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        self._count(job, -1)
        if job.state is JobState.QUEUED and job.queued_at is not None:
            self._ceased[job.queued_at] += 1

    def _count(self, job: Job, sign: int) -> None:
        self.asked_milli += sign * job.request.total_gpu_milli
        self.states[job.user, job.state] += sign
        queue = self.queues.get(job.queue)
        if queue is None:
            queue = self.queues[job.queue] = QueueSums()
        if job.allocation is None:
            queue.length += sign
        else:
            held = sign * job.allocation.total_gpu_milli
            queue.running += sign
            queue.held_milli += held
            self.held_milli[job.user] += held
        key = (job.kind, _model_of(job))
        _sums(self._all, key).add(job, sign)
        _sums(self._by_user.setdefault(job.user, {}), key).add(job, sign)

    # ---------------------------------------------------------------- reading

    def sums(self, users: Iterable[str] | None, models: Sequence[str]) -> dict[KindModel, Sums]:
        """The sums of these users' jobs, or of all jobs. A job that waits for any GPU model counts for the first of
        `models`.
        """
        found: dict[KindModel, Sums] = {}
        for sums in [self._all] if users is None else [self._by_user.get(user, {}) for user in users]:
            for (kind, model), each in sums.items():
                if each.running or each.queued:
                    named = next(iter(models), "") if model == ANY_MODEL else model
                    found.setdefault((kind, named), Sums()).join(each)
        return found

    def queue(self, name: str) -> QueueSums:
        return self.queues.get(name) or QueueSums()

    def oldest_wait(self, name: str) -> float | None:
        """Since when the job waits that has waited longest in the queue."""
        queue = self.queues.get(name)
        waiting = queue.waiting if queue is not None else []
        while waiting and not self._waits_as(waiting[0], name):
            heapq.heappop(waiting)
        return waiting[0][0] if waiting else None

    def _waits_as(self, entry: tuple[float, str], queue: str) -> bool:
        job = self._jobs.get(entry[1])
        return job is not None and job.state is JobState.QUEUED and (job.queued_at, job.queue) == (entry[0], queue)

    def queued_since(self) -> Sequence[float]:
        """When each waiting job began to wait, earliest first."""
        if self._ceased:
            kept = []
            ceased = self._ceased
            for since in sorted([*self._waits, *self._begun]):
                if ceased.get(since, 0):
                    ceased[since] -= 1
                else:
                    kept.append(since)
            self._waits, self._begun, self._ceased = kept, [], Counter()
        elif self._begun:
            self._waits = sorted([*self._waits, *self._begun])
            self._begun = []
        return self._waits


def _sums(found: dict[KindModel, Sums], key: KindModel) -> Sums:
    sums = found.get(key)
    if sums is None:
        sums = found[key] = Sums()
    return sums


def _model_of(job: Job) -> str:
    if job.allocation is not None:
        return job.allocation.model
    if not job.request.wants_gpu:
        return ""
    return next(iter(job.request.models), ANY_MODEL)
