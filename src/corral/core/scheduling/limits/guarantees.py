"""Guaranteed GPUs: what each queue holds, what of it is borrowed, what it is owed, and whose turn that makes it.

A queue may use more than is guaranteed to it while nobody else needs it. Whoever stays within the guarantee of the own
queue goes first, and what others have borrowed comes back by preemption. All of it counts only where running jobs may
be preempted: a guarantee that could not be kept would only leave GPUs idle.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from corral.core.model import WHOLE, Job, Queue
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How a queue stands with its guarantee, in thousandths of a GPU."""

    held_milli: int
    #: held beyond the guarantee, while others have one
    borrowed_milli: int
    #: guaranteed and not held: it comes when its jobs need it
    owed_milli: int


def standing(snapshot: ClusterSnapshot, queue: Queue) -> Standing:
    held, guaranteed = snapshot.held.by_queue.get(queue.name, 0), queue.guaranteed_gpus * WHOLE
    is_lent = snapshot.preemption.enabled and queue.pool in snapshot.guaranteeing
    return Standing(
        held_milli=held,
        borrowed_milli=max(0, held - guaranteed) if is_lent else 0,
        owed_milli=max(0, guaranteed - held) if is_lent else 0,
    )


def counts(snapshot: ClusterSnapshot) -> bool:
    """Whether any guarantee can decide anything: to an installation without one they cost nothing."""
    return snapshot.preemption.enabled and bool(snapshot.guaranteeing)


def is_entitled(snapshot: ClusterSnapshot, job: Job) -> bool:
    """Whether the job asks for no more than what its queue still has to come."""
    queue, asked = snapshot.queues.get(job.queue), job.request.total_gpu_milli
    if not asked or queue is None or not counts(snapshot):
        return False
    return snapshot.held.by_queue.get(queue.name, 0) + asked <= queue.guaranteed_gpus * WHOLE


def owed_to_others_milli(snapshot: ClusterSnapshot, queue: Queue) -> int:
    """What the other queues of its pool still have to come."""
    if not counts(snapshot):
        return 0
    others = (snapshot.queues[name] for name in snapshot.guaranteeing.get(queue.pool, ()) if name != queue.name)
    return sum(standing(snapshot, other).owed_milli for other in others)


def borrowers(snapshot: ClusterSnapshot, queue: Queue, leaving: Collection[str]) -> list[Job]:
    """Jobs that run on what is guaranteed to others, less those that leave anyway.

    The guarantee covers those that cannot be preempted first, then the oldest: it is the latest that have borrowed.
    """
    jobs = [snapshot.jobs[job_id] for job_id in snapshot.holding.get(queue.name, ()) if job_id not in leaving]
    jobs.sort(key=lambda job: (job.preemptible, job.allocated_at or 0.0, job.serial))
    found, reached = [], 0
    for job in jobs:
        reached += job.request.total_gpu_milli
        if reached > queue.guaranteed_gpus * WHOLE and job.request.wants_gpu:
            found.append(job)
    return found


#: Sorts lines: the first is walked first.
Turn = tuple[bool, float, int]


def turn_of(snapshot: ClusterSnapshot, queue: Queue, head: Job, now: float) -> Turn:
    """When a line is walked whose first job is this one: what it is entitled to first, then by time waited × weight."""
    since = head.created_at if head.queued_at is None else head.queued_at
    # Told as a point in time, so that with a weight of 1 it is exactly the time since which it waits.
    weighed = since if queue.weight == 1.0 else now - queue.weight * (now - since)
    return (not is_entitled(snapshot, head), weighed, head.serial)
