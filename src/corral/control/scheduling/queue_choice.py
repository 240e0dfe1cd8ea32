"""The queue of a job whose request names none: a pure choice among the queues that its user may use.

Decides the order among queues. Whether a queue takes a job at all is decided by admission, which asks here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.control.records import DEFAULT_GROUP
from corral.core.model import DEFAULT_POOL, Job, Queue
from corral.core.people.membership import Membership
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: Where a user belongs of whom nothing is known, as in a simulation.
NEWCOMER = Membership(group=DEFAULT_GROUP, pool=DEFAULT_POOL)


def membership_of(snapshot: ClusterSnapshot, user: str) -> Membership:
    return snapshot.memberships.get(user, NEWCOMER)


def reach(snapshot: ClusterSnapshot, user: str) -> list[Queue]:
    """The queues that a user may use, by name: those of the own pool, and those that are shared with the own group."""
    member = membership_of(snapshot, user)
    return [queue for _, queue in sorted(snapshot.queues.items()) if member.may_use(queue)]


def is_within_reach(snapshot: ClusterSnapshot, user: str, queue: Queue) -> bool:
    """The scheduler's rule: a user without a known group may use every queue."""
    member = snapshot.memberships.get(user)
    return member is None or member.may_use(queue)


def ranked(queues: Sequence[Queue], member: Membership, job: Job) -> list[Queue]:
    """Queues that would take a job, the most specific first.

    A queue that says which jobs it is for goes before the pool's own default queue, and one that says nothing goes
    after it: such a queue is for those who ask for it by name.
    """
    return sorted(queues, key=lambda queue: _rank(queue, member, job))


def is_default_of_pool(queue: Queue) -> bool:
    """Every pool has a queue of its own name."""
    return queue.name == queue.pool


def _rank(queue: Queue, member: Membership, job: Job) -> tuple[float | str, ...]:
    longest = math.inf if queue.max_seconds is None else queue.max_seconds
    is_specific = bool(queue.kinds or queue.max_seconds or queue.min_job_gpus or queue.max_job_gpus is not None)
    is_default = is_default_of_pool(queue)
    tier = 1 if is_default else 0 if is_specific else 2
    is_foreign = queue.pool != member.pool
    if job.time_limit_seconds is None:
        # It may run for ever: where no longest time is set it keeps that right, elsewhere it gets the longest one.
        return (-longest, tier, -(queue.min_job_gpus or 0), is_foreign, queue.name)
    return (tier, longest, -(queue.min_job_gpus or 0), is_foreign, queue.name)
