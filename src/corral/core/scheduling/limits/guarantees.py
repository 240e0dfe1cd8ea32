"""Guaranteed GPUs: what each queue holds, how much of it is borrowed, how much it is owed, and the turn of its lines.

A queue may use more GPUs than its guarantee while no other queue needs them. Jobs within the guarantee of their queue
go first, and borrowed GPUs return by preemption. Guarantees count only where preemption is enabled: otherwise they
could be kept only by leaving GPUs idle.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from corral.core.model import WHOLE, Job, Queue
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class GuaranteeUse:
    """The GPUs that a queue holds, compared with its guarantee, in thousandths of a GPU."""

    held_milli: int
    #: held beyond the guarantee, if any queue of the pool has one
    borrowed_milli: int
    #: guaranteed and not held: its jobs get it when they need it
    owed_milli: int


def guarantee_use(snapshot: ClusterSnapshot, queue: Queue) -> GuaranteeUse:
    held, guaranteed = snapshot.held.by_queue.get(queue.name, 0), queue.guaranteed_gpus * WHOLE
    is_lent = snapshot.preemption.enabled and queue.pool in snapshot.guaranteeing
    return GuaranteeUse(
        held_milli=held,
        borrowed_milli=max(0, held - guaranteed) if is_lent else 0,
        owed_milli=max(0, guaranteed - held) if is_lent else 0,
    )


def counts(snapshot: ClusterSnapshot) -> bool:
    """Whether any guarantee can apply: an installation without guarantees pays nothing for them."""
    return snapshot.preemption.enabled and bool(snapshot.guaranteeing)


def is_entitled(snapshot: ClusterSnapshot, job: Job) -> bool:
    """Whether the job asks for no more than its queue is still owed."""
    queue, asked = snapshot.queues.get(job.queue), job.request.total_gpu_milli
    if not asked or queue is None or not counts(snapshot):
        return False
    return snapshot.held.by_queue.get(queue.name, 0) + asked <= queue.guaranteed_gpus * WHOLE


def owed_to_others_milli(snapshot: ClusterSnapshot, queue: Queue) -> int:
    """The sum of the unmet guarantees of the pool's other queues."""
    if not counts(snapshot):
        return 0
    others = (snapshot.queues[name] for name in snapshot.guaranteeing.get(queue.pool, ()) if name != queue.name)
    return sum(guarantee_use(snapshot, other).owed_milli for other in others)


def borrowers(snapshot: ClusterSnapshot, queue: Queue, leaving: Collection[str]) -> list[Job]:
    """Jobs that run on borrowed GPUs, without the jobs in `leaving`.

    The guarantee covers jobs that cannot be preempted first, then the oldest: the latest jobs have borrowed.
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
    """The turn of the line with this first job: entitled jobs first, then by time waited × weight of the queue."""
    since = head.created_at if head.queued_at is None else head.queued_at
    # A point in time, so that with a weight of 1 it is exactly the time since when the job waits.
    weighed = since if queue.weight == 1.0 else now - queue.weight * (now - since)
    return (not is_entitled(snapshot, head), weighed, head.serial)
