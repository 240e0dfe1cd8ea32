"""Preemption: for which waiting jobs running jobs are interrupted, which running jobs are candidates, and by which
rule.

A waiting job that finds no room may preempt running jobs by one of four rules (`SOURCES`): its queue is guaranteed GPUs
that other queues have borrowed; its owner has reserved GPUs that other users' jobs use; it stands before a running job
in a queue whose order preempts; or a running job was backfilled before it because of a prediction and runs longer than
that. Each rule names only running jobs that stand strictly after the waiting job, in an order that never reverses for a
pair of jobs: a preempted job never preempts the job that it was preempted for. Of the named jobs, those are candidates
that are preemptible, have run for the minimum time and are not leaving already. The victims are the candidates that
lose the least work (`victims`).

`PreemptionView` is what one scheduling cycle knows about all this. It is computed lazily and costs nothing where
preemption is switched off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol

from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Allocation, Job, JobState, Queue
from corral.core.quantities import format_duration
from corral.core.scheduling.backfill.planned_start import PlannedAllocation, is_limited, likely_end_if_started
from corral.core.scheduling.limits import guarantees
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import Rank, aged_from
from corral.core.scheduling.plan.plan import Preemption, PreemptionRule
from corral.core.scheduling.preemption.reclaim import ByReservation, own_part
from corral.core.scheduling.preemption.victims import Candidate, choose_victims
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.running_order import RankingAt, rank_in

#: The least loss is searched among so many candidates, those that stand furthest behind; among more only if these do
#: not make enough room.
_FIRST_LOOK = 512

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


class PreemptionView:
    """What one cycle knows about running jobs that may be preempted; computed when first asked for."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self.snapshot = snapshot
        self.now = now
        leaving = [snapshot.jobs[job_id] for ids in snapshot.victims_stopping.values() for job_id in sorted(ids)]
        #: jobs that are being preempted, or were chosen in this cycle: requeued, and moved
        self.leaving: dict[str, Job] = {job.id: job for job in leaving if not job.is_moving}
        self.moving: dict[str, Job] = {job.id: job for job in leaving if job.is_moving}
        #: jobs that will be moved as soon as other jobs have left their new places: what they hold is promised
        self.moving_later: set[str] = set()
        #: when the next job that may not be preempted yet may be
        self._wake_at: float | None = None
        self.reserved = Reserved(snapshot, now)
        #: only the rules that can apply here
        self._sources = [one for one in SOURCES if one.counts(snapshot)] if snapshot.preemption.enabled else []
        self._rankings: dict[str, RankingAt] = {}

    @property
    def is_possible(self) -> bool:
        """Whether any job could be preempted at all."""
        return bool(self._sources)

    @property
    def all_leaving(self) -> list[Job]:
        """Jobs that leave their places for other jobs: requeued or moved."""
        return [*self.leaving.values(), *self.moving.values()]

    def could_help(self, job: Job) -> bool:
        """Whether running jobs might be preempted for the job, or for one behind it in its line."""
        return any(source.could_help(self, job) for source in self._sources)

    def victims(self, job: Job) -> list[Candidate] | None:
        """The victims that make room for the job; None if there are none. Jobs that are leaving already must be out of
        the fleet."""
        fleet, pool = self.snapshot.fleet, self.snapshot.queues[job.queue].pool
        found: list[Candidate] = []
        enough = _FIRST_LOOK
        for candidate in self._candidates(job):
            found.append(candidate)
            if len(found) == enough:
                victims = choose_victims(fleet, job, pool, found)
                if victims is not None:
                    return victims
                enough *= 8
        return choose_victims(fleet, job, pool, found) if found else None

    def candidates(self, job: Job) -> list[Candidate]:
        """The candidates that stand furthest behind, as many as are considered first."""
        return [*islice(self._candidates(job), _FIRST_LOOK)]

    def may_be_moved(self, job: Job) -> bool:
        """Whether the job has run for the minimum time since its last start or move, and is not leaving already."""
        return not self._is_chosen(job.id) and self._is_ripe(job)

    def leave(self, victims: Iterable[Candidate], for_job: Job) -> list[Preemption]:
        """Note that these jobs are preempted in this cycle."""
        victims = list(victims)
        self.leaving |= {victim.job.id: victim.job for victim in victims}
        return [
            Preemption(
                job_id=victim.job.id,
                for_job=for_job.id,
                rule=victim.rule,
                lost_gpu_seconds=victim.lost_gpu_seconds,
                detail=victim.detail(),
            )
            for victim in victims
        ]

    def move(self, job: Job, to: Allocation, for_job: Job) -> Preemption:
        """Note that the job is moved in this cycle."""
        self.moving[job.id] = job
        assert job.allocation is not None
        here, there = job.allocation.grants[0].node, to.grants[0].node
        return Preemption(
            job_id=job.id,
            for_job=for_job.id,
            rule=PreemptionRule.MOVE,
            lost_gpu_seconds=lost_gpu_seconds(job, self.now),
            detail=(
                f"{for_job.id} asks for {_request_text(for_job)}, and there is room for it, but not in one place: "
                f"{job.id} moves from {here} to {there}"
            ),
            to=to,
        )

    def sooner(self, job: Job) -> dict[str, float]:
        """By job id: the latest end of running jobs that are being preempted, or could be preempted for this job."""
        found = {one.id: self.now + one.grace_seconds for one in self.leaving.values()}
        for one, rule, _ in self._after(job):
            if self._frees(job, one, rule) is not None:
                continue
            end = max(self.now, self._ripe_at(one)) + one.grace_seconds
            if end < one.likely_end_after(self.now):
                found[one.id] = end
        return found

    def can_reclaim(self, job: Job, planned: PlannedAllocation) -> bool:
        """Whether a job that starts now on resources held for a planned start can be preempted in time for that
        start."""
        if not job.preemptible or not job.request.wants_gpu:
            return False
        if math.isfinite(planned.at) and self.now + self.snapshot.preemption.min_run_seconds > planned.at:
            return False
        return any(source.can_reclaim(self, job, planned) for source in self._sources)

    def ranking(self, queue: Queue) -> RankingAt:
        """The preemptible running jobs of a queue whose order preempts, by their rank."""
        found = self._rankings.get(queue.name)
        if found is None:
            ranking = self.snapshot.ranking(queue)
            found = self._rankings[queue.name] = ranking.at(self.now, self.snapshot.preemption.margin)
        return found

    @property
    def wake_at(self) -> float | None:
        """When another cycle is due: the answer changes then without any event."""
        falls = [at for ranking in self._rankings.values() if (at := ranking.next_fall()) is not None and at > self.now]
        return min((at for at in (self._wake_at, *falls) if at is not None), default=None)

    def wake(self, at: float) -> None:
        """Ask for another cycle at that time: the answer changes then without any event."""
        if at > self.now:
            self._wake_at = at if self._wake_at is None else min(self._wake_at, at)

    def _candidates(self, job: Job) -> Iterator[Candidate]:
        for one, rule, detail in self._after(job):
            if self._is_ripe(one):
                lost, frees = lost_gpu_seconds(one, self.now), self._frees(job, one, rule)
                yield Candidate(job=one, rule=rule, lost_gpu_seconds=lost, frees=frees, detail=detail)

    def _after(self, job: Job) -> Iterator[tuple[Job, PreemptionRule, Callable[[], str]]]:
        """Running jobs that stand after a job and hold GPUs that it could use, each with the first rule that names
        it."""
        if not job.request.wants_gpu or job.queue not in self.snapshot.queues:
            return
        models, seen = job.request.models, {*self.leaving, *self.moving, *self.moving_later}
        for source in self._sources:
            for one, detail in source.after(self, job):
                if one.id in seen or not one.preemptible or one.allocation is None or not one.allocation.model:
                    continue
                if one.state not in (JobState.STARTING, JobState.RUNNING) or self.reserved.shields(one, job):
                    continue
                if not models or one.allocation.model in models:
                    seen.add(one.id)
                    yield one, source.rule, detail

    def _frees(self, job: Job, victim: Job, rule: PreemptionRule) -> Allocation | None:
        """The part of a victim's allocation that the job has a right to; None if that is all of it."""
        return own_part(self, job, victim) if rule is PreemptionRule.RESERVATION else None

    def _is_chosen(self, job_id: str) -> bool:
        """Whether the job is leaving already, or was chosen in this cycle: its resources are given to one job only."""
        return job_id in self.leaving or job_id in self.moving or job_id in self.moving_later

    def _ripe_at(self, job: Job) -> float:
        return (job.allocated_at or 0.0) + self.snapshot.preemption.min_run_seconds

    def _is_ripe(self, job: Job) -> bool:
        self.wake(self._ripe_at(job))
        return job.state is JobState.RUNNING and self._ripe_at(job) <= self.now


def claimants(snapshot: ClusterSnapshot, now: float) -> list[Job]:
    """Waiting jobs that running jobs are being preempted for, or were preempted for since they wait.

    Jobs that ask for GPUs guaranteed to their queue come first, as they did when the victims were chosen; then jobs
    whose victims are all gone, so that they start on the freed GPUs; then by the order of their queue, where that
    preempts, and by how long they wait.
    """
    found: list[Job] = []
    for job_id in {*snapshot.victims_stopping, *snapshot.victims_requeued}:
        job = snapshot.jobs.get(job_id)
        if job is None or job.state is not JobState.QUEUED or job.after or job.queue not in snapshot.queues:
            continue
        # Victims of an earlier attempt of the job do not count any more.
        since = job.queued_at or 0.0
        gone = (snapshot.jobs[other].queued_at or 0.0 for other in snapshot.victims_requeued.get(job_id, ()))
        if job_id in snapshot.victims_stopping or any(at >= since for at in gone):
            found.append(job)
    waiting = {job.id: job for job in found}

    def order(job: Job) -> tuple[int, bool, bool, float, float, int]:
        is_entitled = guarantees.is_entitled(snapshot, job)
        is_kept_waiting = job.id in snapshot.victims_stopping
        rank = rank_of(snapshot, snapshot.queues[job.queue], job, now)
        place = -math.inf if rank is None else rank.place
        return _steps_behind(job, waiting), not is_entitled, is_kept_waiting, place, job.queued_at or 0.0, job.serial

    return sorted(found, key=order)


def _steps_behind(job: Job, claimants: dict[str, Job]) -> int:
    """How many claimants the job was preempted for, directly and through others: it comes behind them, even if jobs
    were preempted for it before. Otherwise two jobs could preempt each other at the same moment for ever."""
    before = list[str]()
    for_job = job.preempted_for
    while for_job in claimants and for_job not in before:
        before.append(for_job)
        for_job = claimants[for_job].preempted_for
    return len(before)


def lost_gpu_seconds(job: Job, now: float) -> float:
    """Work since the last checkpoint: lost, unless the job saves when it is warned."""
    if job.started_at is None or job.allocation is None:
        return 0.0
    since = job.started_at if job.checkpointed_at is None else max(job.started_at, job.checkpointed_at)
    return max(0.0, now - since) * job.allocation.total_gpu_milli / WHOLE


def writes_checkpoints(job: Job) -> bool:
    """Whether the job is known to write checkpoints: a preemption costs it little."""
    return job.checkpointed_at is not None or job.saved_seconds > 0


def _request_text(job: Job) -> str:
    request = job.request
    each = f"{request.gpus} {'GPU' if request.gpus == 1 else 'GPUs'}"
    return f"{each} of one node" if request.nodes == 1 else f"{each} of each of {request.nodes} nodes"


def is_ranked(queue: Queue) -> bool:
    """Whether the order of the queue preempts, so that its jobs have ranks."""
    return queue.preempts and POLICIES[queue.policy].rank is not None


def rank_of(snapshot: ClusterSnapshot, queue: Queue, job: Job, now: float) -> Rank | None:
    """The rank of a job in a queue whose order preempts; None in others."""
    return rank_in(queue.policy, job, snapshot.ordering, now) if queue.preempts else None


# ---------------------------------------------------------------- the rules


class ByGuarantee:
    """Borrowed GPUs return to the queue that they are guaranteed to."""

    rule = PreemptionRule.GUARANTEE

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return guarantees.counts(snapshot)

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        return guarantees.standing(view.snapshot, view.snapshot.queues[job.queue]).owed_milli > 0

    def after(self, view: PreemptionView, job: Job) -> Iterator[After]:
        snapshot = view.snapshot
        if not guarantees.is_entitled(snapshot, job):
            return
        own = snapshot.queues[job.queue]
        for name in sorted(snapshot.holding):
            other = snapshot.queues.get(name)
            if other is not None and name != own.name and other.pool == own.pool:
                detail = self._detail(snapshot, own, other, job)
                yield from ((one, detail) for one in guarantees.borrowers(snapshot, other, view.leaving))

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
    """In a queue whose order preempts, a waiting job preempts running jobs that stand after it."""

    rule = PreemptionRule.ORDER

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return any(queue.preempts for queue in snapshot.queues.values())

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        queue = view.snapshot.queues[job.queue]
        rank = rank_of(view.snapshot, queue, job, view.now)
        if rank is None:
            return False
        return next(view.ranking(queue).behind(rank.place), None) is not None

    def after(self, view: PreemptionView, job: Job) -> Iterator[After]:
        queue = view.snapshot.queues[job.queue]
        rank = rank_of(view.snapshot, queue, job, view.now)
        if rank is not None:
            behind = view.ranking(queue).behind(rank.place)
            yield from ((one, self._detail(view, queue, job, one)) for one in behind)

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        """By the ranks at this moment: a job that becomes more urgent while it runs keeps its GPUs."""
        if job.queue != planned.job.queue:
            return False
        queue = view.snapshot.queues[job.queue]
        own, others = (rank_of(view.snapshot, queue, one, view.now) for one in (job, planned.job))
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
        pool = snapshot.queues[job.queue].pool
        next_end = snapshot.next_likely_end(view.now)
        if next_end is not None:
            view.wake(next_end)
        for one in snapshot.overrunning(view.now):
            if (one.allocated_at or 0.0) > since and self._may_take_back(view, pool, one, job):
                yield one, self._detail(view, job, one)
        yield from self._passed_gang(view, pool, job)

    def _passed_gang(self, view: PreemptionView, pool: str, job: Job) -> Iterator[After]:
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
            for job_id in sorted(snapshot.holding[name]):
                one = snapshot.jobs[job_id]
                if writes_checkpoints(one) and self._may_take_back(view, pool, one, job):
                    yield one, self._gang_detail(view, job, one)

    def _may_take_back(self, view: PreemptionView, pool: str, one: Job, job: Job) -> bool:
        queue = view.snapshot.queues.get(one.queue)
        is_here = queue is not None and queue.pool == pool and self._is_behind(view, one, job)
        return is_here and queue is not None and self._has_borrowed(view, queue, one)

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        if is_limited(job) or not math.isfinite(planned.at) or not self._is_behind(view, job, planned.job):
            return False
        is_in_time = likely_end_if_started(job, view.now) <= planned.at
        return is_in_time and not guarantees.is_entitled(view.snapshot, job)

    def _is_behind(self, view: PreemptionView, one: Job, job: Job) -> bool:
        if one.queue == job.queue and is_ranked(view.snapshot.queues[job.queue]):
            return False
        return (aged_from(job), job.serial) < (aged_from(one), one.serial)

    def _has_borrowed(self, view: PreemptionView, queue: Queue, one: Job) -> bool:
        if not queue.guaranteed_gpus:
            return True
        return any(other.id == one.id for other in guarantees.borrowers(view.snapshot, queue, view.leaving))

    def _gang_detail(self, view: PreemptionView, job: Job, victim: Job) -> Callable[[], str]:
        waited = format_duration(max(1.0, view.now - aged_from(job)))
        later = format_duration(max(1.0, aged_from(victim) - aged_from(job)))
        return lambda: (
            f"{victim.id} was queued {later} after {job.id} and passed it; {job.id} has waited for {waited} for "
            f"{_request_text(job)}, and {victim.id} writes checkpoints"
        )

    def _detail(self, view: PreemptionView, job: Job, victim: Job) -> Callable[[], str]:
        assert victim.predicted is not None
        ran = format_duration(max(1.0, view.now - (victim.started_at or view.now)))
        expected = format_duration(max(1.0, victim.predicted.p90_seconds))
        return lambda: (
            f"{victim.id} passed {job.id}, which waited for longer, because runs like it take {expected}; "
            f"it has run for {ran}"
        )


#: In the order in which they are asked. A new rule is one more entry here.
SOURCES: tuple[Source, ...] = (ByGuarantee(), ByReservation(), ByOrder(), ByOverrun())
