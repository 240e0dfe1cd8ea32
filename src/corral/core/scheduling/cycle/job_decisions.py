"""What one cycle gives to single jobs: a start now, a start that is protected, or what others will have given up.

Everything that is given is supposed in the trial at once, so that the next job finds only the rest.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from corral.core.jobs.lifecycle import together
from corral.core.model import Allocation, Job, Queue
from corral.core.scheduling.backfill.planned_start import (
    ProtectedStart,
    Return,
    end_if_started,
    free_part,
    is_limited,
    likely_end_if_started,
    protect,
    still_held,
)
from corral.core.scheduling.elastic.resize import scalable_jobs
from corral.core.scheduling.limits.claims import Claim
from corral.core.scheduling.limits.hold_rules import owed
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.scheduling.plan.plan import Preemption, Start
from corral.core.scheduling.preemption.moves import Move, Moving
from corral.core.scheduling.preemption.preemption import Preempting, rank_of
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.expected_releases import Vacating
from corral.core.snapshot.trial import Trial
from corral.core.snapshot.waiting_lines import LineCursor, LineKey, line_of


@dataclass(slots=True)
class Walk:
    """How far a cycle has come in one line."""

    key: LineKey
    queue: Queue
    cursor: LineCursor
    #: jobs that have a protected start, if it could be told where they could ever run
    protected: int = 0
    #: whose they are
    protected_users: set[str] = field(default_factory=set)


class Giving:
    """The part of a cycle that decides about one job at a time."""

    def __init__(self, snapshot: ClusterSnapshot, trial: Trial, now: float, after: Giving | None = None) -> None:
        """`after` is a cycle whose starts are supposed already: this one goes on from there."""
        self.snapshot = snapshot
        self.trial = trial
        self.now = now
        self._fleet = snapshot.fleet
        self._starts: list[Start] = [*after._starts] if after else []
        self._starting = {start.job_id for start in self._starts}
        #: ends of this cycle's starts, soonest first
        self._returns: list[Return] = [*after._returns] if after else []
        self._protected: list[tuple[LineKey, ProtectedStart]] = []
        self._claims: list[Claim] = []
        self.reserved: Reserved = after.reserved if after else Reserved(snapshot, now)
        self._wake_at: float | None = self.reserved.next_edge
        self._preempting: Preempting = after._preempting if after else Preempting(snapshot, now)
        #: in a cycle that only supposes something, nobody is preempted
        self._may_preempt = after is None and self._preempting.is_possible
        self._preemptions: list[Preemption] = []
        self._moving: Moving = after._moving if after else Moving(self._preempting, self.reserved)
        self._coming: Vacating = after._coming if after else Vacating(self._preempting.giving_way)
        #: jobs that start as soon as others have given way, and what they will have
        self._promised: dict[str, tuple[LineKey, ProtectedStart]] = {**after._promised} if after else {}
        self._protected += self._promised.values()
        #: when the first line of a queue whose order preempts had its turn
        self._turns: dict[str, float] = {}

    def _find_place(self, queue: Queue, job: Job) -> Allocation | None:
        return find_open_place(self.reserved, self._fleet, job, queue, end_if_started(job, self.now))

    def _could_ever_fit(self, queue: Queue, job: Job) -> bool:
        return could_ever_fit(self._fleet, self.reserved.ever(job, queue.pool), queue.pool)

    def _start(self, queue: Queue, job: Job) -> bool:
        allocation = self._find_place(queue, job)
        if allocation is not None:
            self.trial.start(job, allocation)
        else:
            allocation = self._start_before_others(queue, job)
        if allocation is None:
            return False
        self._starts.append(Start(job_id=job.id, allocation=allocation))
        self._starting.add(job.id)
        end = Return(likely_end_if_started(job, self.now), job.serial, allocation, is_limited(job))
        insort(self._returns, end, key=lambda item: item[:2])
        return True

    def _start_before_others(self, queue: Queue, job: Job) -> Allocation | None:
        """Start the job on what is held for others, if it is gone before they need it, or can be made to go."""
        end = end_if_started(job, self.now)
        lifted = [
            number
            for number, (_, held) in enumerate(self._protected)
            if held.job.id not in self._promised
            and (
                (end <= held.at and math.isfinite(end))
                or self._preempting.gives_back(job, held)
                or self._stands_before(queue, job, held.job)
            )
        ]
        if not lifted:
            return None
        for number in lifted:
            self.trial.lift(self._protected[number][1].job.id)
        allocation = self._find_place(queue, job)
        if allocation is not None:
            self.trial.start(job, allocation)
        for number in lifted:
            line, protected = self._protected[number]
            if allocation is not None:
                protected = still_held(self._fleet, protected)
                self._protected[number] = (line, protected)
            self.trial.hold(protected.job.id, protected.held)
        return allocation

    def _stands_before(self, queue: Queue, job: Job, other: Job) -> bool:
        """In a queue whose order preempts, nothing is kept from a job for one behind it, in another line of the
        queue: it would take that back at once."""
        if other.queue != queue.name or not self._is_ranked(queue):
            return False
        own, others = (rank_of(self.snapshot, queue, one, self.now) for one in (job, other))
        return own is not None and others is not None and own.place < others.place

    def _is_ranked(self, queue: Queue) -> bool:
        """Whether the order of the queue preempts: then it is one order for all its lines."""
        return self.snapshot.preemption.enabled and queue.preempts and POLICIES[queue.policy].rank is not None

    def _protect(self, walk: Walk, job: Job) -> None:
        protected = protect(
            self.snapshot,
            job,
            walk.queue.pool,
            self.now,
            started=self._returns,
            others=[protected for _, protected in self._protected],
            sooner=self._preempting.sooner(job) if self._preempting.is_possible else {},
            reserved=self.reserved,
        )
        walk.protected += 1
        walk.protected_users.add(job.user)
        if protected is not None:
            self.trial.hold(job.id, protected.held)
            self._protected.append((walk.key, protected))

    def _start_or_get_way(self, walk: Walk, job: Job) -> bool:
        return self._start(walk.queue, job) or self._get_way(walk.queue, job)

    def _could_get_way(self, job: Job) -> bool:
        """Whether others might be preempted for the job, or for one behind it in its line."""
        return self._may_preempt and self._preempting.could_help(job)

    def _get_way(self, queue: Queue, job: Job) -> bool:
        """Let others make room for a job that has none: those who give way anyway, or else the cheapest victims.

        Not if elastic jobs can: to shrink costs less than to be interrupted, and they do so for whoever waits.
        """
        if not self._may_preempt or not job.request.wants_gpu:
            return False
        if self._promise(queue, job):
            return True
        with self.trial.without([self._coming.left()]):
            if self._would_fit_beside_elastic(queue, job):
                return False
            victims = self._preempting.victims(self.reserved.widest(job, queue.pool, end_if_started(job, self.now)))
        if not victims or not self._promise(queue, job, [victim.job for victim in victims]):
            return self._get_way_by_moves(queue, job)
        self._preemptions += self._preempting.leave(victims, job)
        return True

    def _get_way_by_moves(self, queue: Queue, job: Job) -> bool:
        """Let others go on elsewhere, where there is room enough for a job but not in one place."""
        if not self._may_preempt or not self._moving.could_help(queue):
            return False
        with self.trial.without([self._coming.left()]):
            found = self._moving.find(queue, job)
        if found is None or not self._promise(queue, job, [one.job for one in found.victims], found.moves):
            return False
        self._preemptions += self._preempting.leave(found.victims, job)
        return True

    def _promise(self, queue: Queue, job: Job, victims: Sequence[Job] = (), moves: Sequence[Move] = ()) -> bool:
        """Give the job what is there when all those have gone who leave; what is free of it already is kept."""
        if not victims and not moves and not self._coming.has_gpus:
            return False
        leaving = (*self._preempting.leaving.values(), *victims)
        going = (*victims, *(move.job for move in moves))
        back = [self._coming.left(), *(one.allocation for one in going if one.allocation)]
        with self.trial.without(back, leaving), self.trial.taken([move.to for move in moves]):
            # When those are gone, others may be owed what they held.
            allocation = self._find_place(queue, job) if owed(self.snapshot, job, self.now) is None else None
        if allocation is None:
            return False
        nodes = {grant.node for grant in allocation.grants}
        leaving = (*leaving, *self._preempting.moving.values(), *going)
        at = self.now + max((one.grace_seconds for one in leaving if _is_on(one, nodes)), default=0.0)
        for one in going:
            self._coming.add(one)
        kept = [allocation, *self._move(job, moves)]
        allocations = replace(allocation, grants=tuple(grant for one in kept for grant in one.grants))
        held = free_part(self._fleet, allocations)
        self._coming.use(allocations, held)
        self.trial.promise(job, held)
        protected = ProtectedStart(job=job, at=at, allocation=allocation, held=held, is_firm=False)
        self._promised[job.id] = (line_of(job), protected)
        self._protected.append((line_of(job), protected))
        return True

    def _move(self, for_job: Job, moves: Iterable[Move]) -> Iterator[Allocation]:
        """Jobs go where there is room already; for the others the places where they will go are kept."""
        for move in moves:
            assert move.job.allocation is not None
            if free_part(self._fleet, move.to).total_gpu_milli < move.to.total_gpu_milli:
                self._preempting.moving_later.add(move.job.id)
                yield move.to
                continue
            both = replace(move.job, allocation=together(move.job.allocation, move.to))
            self.trial.resize(move.job, both)
            self._preemptions.append(self._preempting.move(move.job, move.to, for_job))

    def _would_fit_beside_elastic(self, queue: Queue, job: Job) -> bool:
        if not self.snapshot.scaling.enabled or not self.snapshot.elastic:
            return False
        able = [item for item in scalable_jobs(self.snapshot) if item.spare or item.coming]
        with self.snapshot.trial() as supposed:
            for item in able:
                supposed.resize(item.job, item.at_its_least())
            return bool(able) and self._find_place(queue, job) is not None


def _is_on(job: Job, nodes: Iterable[str]) -> bool:
    return job.allocation is not None and any(grant.node in nodes for grant in job.allocation.grants)
