"""The rules by which running jobs are preempted: borrowed GPUs return, lent ones return, an order preempts, and a job
that was passed takes back its place.

Each rule names only running jobs that stand strictly after the waiting job, in an order that never reverses for a pair
of jobs: a preempted job never preempts the job that it was preempted for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from corral.core.fleet.resources import gpus_text
from corral.core.model import Job, Queue
from corral.core.quantities import format_duration
from corral.core.scheduling.backfill.planned_allocation import PlannedAllocation, is_limited, likely_end_if_started
from corral.core.scheduling.limits import guarantees
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import Rank, aged_from
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.preemption.reclaim import ByReservation
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.running_order import rank_in

if TYPE_CHECKING:
    from corral.core.scheduling.preemption.preemption import PreemptionView

#: A running job, and a function that describes the rule with its numbers.
After = tuple[Job, Callable[[], str]]


class Source(Protocol):
    """A rule by which running jobs are preempted."""

    rule: PreemptionRule

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        """Whether the rule can apply in this installation; if not, it must cost nothing."""

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        """Whether the rule might name a running job for this job, or for one behind it in its line. Must be quick."""

    def after(self, view: PreemptionView, job: Job) -> Iterator[After]:
        """Running jobs that stand strictly after the job, whether they may be preempted yet or not."""

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        """Whether a job that starts now on resources held for a planned start can be preempted for that start."""


def writes_checkpoints(job: Job) -> bool:
    """Whether the job is known to write checkpoints: a preemption costs it little."""
    return job.checkpointed_at is not None or job.saved_seconds > 0


def request_text(job: Job) -> str:
    request = job.request
    each = f"{request.gpus} {'GPU' if request.gpus == 1 else 'GPUs'}"
    return f"{each} of one node" if request.nodes == 1 else f"{each} of each of {request.nodes} nodes"


def is_ranked(queue: Queue) -> bool:
    """Whether the order of the queue preempts, so that its jobs have ranks."""
    return queue.preempts and POLICIES[queue.policy].rank is not None


def rank_of(snapshot: ClusterSnapshot, queue: Queue, job: Job, now: float) -> Rank | None:
    """The rank of a job in a queue whose order preempts; None in others."""
    return rank_in(queue.policy, job, snapshot.ordering, now) if queue.preempts else None


def preempts_from(snapshot: ClusterSnapshot, queue: Queue, job: Job) -> float:
    """The time from which a waiting job preempts by the order of its queue. Under an order by run time it waits a
    little first: other jobs end all the time. A pinned job, and one before others by its priority, preempts at once.
    """
    if job.pinned_at is not None or not POLICIES[queue.policy].looks_at_run_times:
        return -math.inf
    return (job.queued_at or 0.0) + snapshot.preemption.patience_seconds


class ByGuarantee:
    """Borrowed GPUs return to the queue that they are guaranteed to."""

    rule = PreemptionRule.GUARANTEE

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return guarantees.counts(snapshot)

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        return guarantees.guarantee_use(view.snapshot, view.snapshot.queues[job.queue]).owed_milli > 0

    def after(self, view: PreemptionView, job: Job) -> Iterator[After]:
        snapshot = view.snapshot
        if not guarantees.is_entitled(snapshot, job):
            return
        own = snapshot.queues[job.queue]
        for name in sorted(snapshot.holding):
            other = snapshot.queues.get(name)
            if other is not None and name != own.name and other.pool == own.pool:
                detail = self._detail(snapshot, own, other, job)
                yield from ((victim, detail) for victim in guarantees.borrowers(snapshot, other, view.leaving))

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        queues = view.snapshot.queues
        own, other = queues[job.queue], queues[planned.job.queue]
        if own.name == other.name or own.pool != other.pool or not guarantees.is_entitled(view.snapshot, planned.job):
            return False
        return not guarantees.is_entitled(view.snapshot, job)

    def _detail(self, snapshot: ClusterSnapshot, own: Queue, other: Queue, job: Job) -> Callable[[], str]:
        held, borrows = (gpus_text(snapshot.held.by_queue.get(name, 0)) for name in (own.name, other.name))
        count = f"{own.guaranteed_gpus} {'GPU' if own.guaranteed_gpus == 1 else 'GPUs'}"
        return lambda: (
            f"queue {own.name} has {count} guaranteed and holds {held}; {job.id} asks for "
            f"{gpus_text(job.request.total_gpu_milli)} of them, and queue {other.name}, which has "
            f"{other.guaranteed_gpus} guaranteed, holds {borrows}"
        )


class ByOrder:
    """Lets a waiting job preempt running jobs that rank after it, in a queue whose order preempts."""

    rule = PreemptionRule.ORDER

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return any(queue.preempts for queue in snapshot.queues.values())

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        rank = view.rank_of(job)
        if rank is None:
            return False
        return next(view.ranking(job).behind(rank.place), None) is not None

    def after(self, view: PreemptionView, job: Job) -> Iterator[After]:
        queue = view.snapshot.queues[job.queue]
        rank = view.rank_of(job)
        if rank is None:
            return
        if (may_from := preempts_from(view.snapshot, queue, job)) > view.now:
            view.wake(may_from)
            return
        behind = view.ranking(job).behind(rank.place)
        yield from ((victim, self._detail(view, queue, job, victim)) for victim in behind)

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        """Compares the ranks at this moment: a job that becomes more urgent while it runs keeps its GPUs."""
        if job.queue != planned.job.queue:
            return False
        own, others = view.rank_of(job), view.rank_of(planned.job)
        return own is not None and others is not None and others.place < own.place

    def _detail(self, view: PreemptionView, queue: Queue, job: Job, victim: Job) -> Callable[[], str]:
        def detail() -> str:
            if job.pinned_at is not None:
                return f"{job.id} is pinned by an operator, and the order of queue {queue.name} preempts"
            describe, rules = POLICIES[queue.policy].rank_text, view.snapshot.ordering
            return (
                f"in queue {queue.name}, whose order preempts, {job.id} ({describe(job, rules, view.now)}) goes before "
                f"{victim.id} ({describe(victim, rules, view.now)})"
            )

        return detail


class ByOverrun:
    """A job that was backfilled before a waiting job because of a prediction, and runs longer, is preempted for it; and
    for a gang that has waited for long, a job that passed it.

    Only the younger of two jobs is backfilled so, never the older one. Where another rule could reverse the two, in a
    queue whose order preempts or within a guarantee, no job is backfilled by its prediction.
    """

    rule = PreemptionRule.OVERRUN

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return True

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        return False  # it helps jobs whose planned start has come, and those are considered anyway

    def after(self, view: PreemptionView, job: Job) -> Iterator[After]:
        snapshot, since = view.snapshot, job.queued_at or 0.0
        queue = snapshot.queues[job.queue]
        pool, ranked = queue.pool, job.queue if is_ranked(queue) else None
        if ranked is not None and snapshot.holding.keys() <= {ranked}:
            return  # all running jobs stand in one order with the job, and that order preempts
        next_end = snapshot.next_likely_end(view.now)
        if next_end is not None:
            view.wake(next_end)
        for victim in snapshot.overrunning(view.now):
            if (
                victim.queue != ranked
                and (victim.allocated_at or 0.0) > since
                and self._may_take_back(view, pool, victim, job)
            ):
                yield victim, self._detail(view, job, victim)
        yield from self._passed_gang(view, pool, ranked, job)

    def _passed_gang(self, view: PreemptionView, pool: str, ranked: str | None, job: Job) -> Iterator[After]:
        """A gang needs whole nodes at one moment, which a stream of small jobs never leaves free. After a while it
        takes them from jobs that passed it and lose little: those that write checkpoints."""
        snapshot, patience = view.snapshot, view.snapshot.preemption.gang_patience_seconds
        if not job.request.is_gang or patience is None:
            return
        is_due_at = aged_from(job) + patience
        if is_due_at > view.now:
            view.wake(is_due_at)
            return
        for name in sorted(snapshot.holding):
            for job_id in sorted(snapshot.holding[name]) if name != ranked else ():
                victim = snapshot.jobs[job_id]
                if writes_checkpoints(victim) and self._may_take_back(view, pool, victim, job):
                    yield victim, self._gang_detail(view, job, victim)

    def _may_take_back(self, view: PreemptionView, pool: str, victim: Job, job: Job) -> bool:
        queue = view.snapshot.queues.get(victim.queue)
        is_here = queue is not None and queue.pool == pool and self._is_behind(view, victim, job)
        return is_here and queue is not None and self._has_borrowed(view, queue, victim)

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        if is_limited(job) or not math.isfinite(planned.at) or not self._is_behind(view, job, planned.job):
            return False
        is_in_time = likely_end_if_started(job, view.now) <= planned.at
        return is_in_time and not guarantees.is_entitled(view.snapshot, job)

    def _is_behind(self, view: PreemptionView, victim: Job, job: Job) -> bool:
        if victim.queue == job.queue and is_ranked(view.snapshot.queues[job.queue]):
            return False
        return (aged_from(job), job.serial) < (aged_from(victim), victim.serial)

    def _has_borrowed(self, view: PreemptionView, queue: Queue, victim: Job) -> bool:
        if not queue.guaranteed_gpus:
            return True
        return any(other.id == victim.id for other in guarantees.borrowers(view.snapshot, queue, view.leaving))

    def _gang_detail(self, view: PreemptionView, job: Job, victim: Job) -> Callable[[], str]:
        def detail() -> str:
            waited = format_duration(max(1.0, view.now - aged_from(job)))
            later = format_duration(max(1.0, aged_from(victim) - aged_from(job)))
            return (
                f"{victim.id} was queued {later} after {job.id} and passed it; {job.id} has waited for {waited} for "
                f"{request_text(job)}, and {victim.id} writes checkpoints"
            )

        return detail

    def _detail(self, view: PreemptionView, job: Job, victim: Job) -> Callable[[], str]:
        def detail() -> str:
            assert victim.predicted is not None
            ran = format_duration(max(1.0, view.now - (victim.started_at or view.now)))
            expected = format_duration(max(1.0, victim.predicted.p90_seconds))
            return (
                f"{victim.id} passed {job.id}, which waited for longer, because runs like it take {expected}; "
                f"it has run for {ran}"
            )

        return detail


#: In the order in which they are asked. A new rule is one more entry here.
SOURCES: tuple[Source, ...] = (ByGuarantee(), ByReservation(), ByOrder(), ByOverrun())
