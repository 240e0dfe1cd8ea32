"""Decisions of one cycle about single jobs: a start now, a planned start, or a start after a preemption.

Each decision is applied to the trial at once, so that the next job finds only the resources that are left. The order in
which jobs are considered is decided in `scheduler`.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from corral.core.copies import replace
from corral.core.jobs.allocation_change import together
from corral.core.model import Allocation, Job, Queue
from corral.core.scheduling.backfill.planned_allocation import (
    PlannedAllocation,
    end_if_started,
    free_part,
    idle_gpu_seconds,
    is_limited,
    likely_end_if_started,
    still_held,
)
from corral.core.scheduling.backfill.planned_start import AllocationEnd, PlannedStartSearch
from corral.core.scheduling.elastic.resize import scalable_jobs
from corral.core.scheduling.limits.hold_rules import owed
from corral.core.scheduling.ordering.cost import aged_from
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.scheduling.plan.plan import Preemption, Start
from corral.core.scheduling.preemption.moves import Move, MoveSearch
from corral.core.scheduling.preemption.preemption import PreemptionView
from corral.core.scheduling.preemption.rules import is_ranked
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.expected_releases import ExpectedReleases
from corral.core.snapshot.trial import Trial
from corral.core.snapshot.waiting_lines import LineKey, line_of


class JobDecisions:
    """The starts, planned starts and preemptions that a cycle has decided so far."""

    def __init__(
        self, snapshot: ClusterSnapshot, trial: Trial, now: float, continued: JobDecisions | None = None
    ) -> None:
        """`continued` are decisions whose starts are applied to the snapshot's trial already. Decisions that continue
        others preempt no job."""
        self.snapshot = snapshot
        self.trial = trial
        self.now = now
        self._fleet = snapshot.fleet
        self.starts: list[Start] = [*continued.starts] if continued else []
        #: the ids of the jobs that start
        self.starting = {start.job_id for start in self.starts}
        #: by id: jobs whose planned start may be delayed as far as it has slack
        self._delayable: set[str] = set()
        #: ends of this cycle's starts, soonest first
        self._ends: list[AllocationEnd] = [*continued._ends] if continued else []
        self.planned: list[tuple[LineKey, PlannedAllocation]] = []
        self.reserved: Reserved = continued.reserved if continued else Reserved(snapshot, now)
        self.preempting: PreemptionView = continued.preempting if continued else PreemptionView(snapshot, now)
        self._may_preempt = continued is None and self.preempting.is_possible
        self.preemptions: list[Preemption] = []
        self._moves: MoveSearch = continued._moves if continued else MoveSearch(self.preempting, self.reserved)
        #: resources that leaving jobs will release and that are promised to no job yet
        self._coming: ExpectedReleases = (
            continued._coming if continued else ExpectedReleases(self.preempting.all_leaving)
        )
        #: by id: jobs that start as soon as preempted jobs have left, and the allocation that they will get
        self.promised: dict[str, tuple[LineKey, PlannedAllocation]] = {**continued.promised} if continued else {}
        self.planned += self.promised.values()

    def could_ever_fit(self, queue: Queue, job: Job) -> bool:
        return could_ever_fit(self._fleet, self.reserved.ever(job, queue.pool), queue.pool)

    def is_ranked(self, queue: Queue) -> bool:
        """Whether the order of the queue preempts: then all its lines share one order."""
        return self.snapshot.preemption.enabled and is_ranked(queue)

    # ---------------------------------------------------------------- starts

    def start(self, queue: Queue, job: Job) -> bool:
        allocation = self._find_place(queue, job)
        if allocation is not None:
            self.trial.start(job, allocation)
        else:
            allocation = self._backfill(queue, job)
        if allocation is None:
            return False
        self.starts.append(Start(job_id=job.id, allocation=allocation))
        self.starting.add(job.id)
        end = AllocationEnd(likely_end_if_started(job, self.now), job.serial, allocation, is_limited(job))
        insort(self._ends, end, key=lambda item: item[:2])
        return True

    def plan_start(self, line: LineKey, queue: Queue, job: Job) -> None:
        """Give the job a planned start and hold the resources for it that are free now."""
        planned = PlannedStartSearch(
            snapshot=self.snapshot,
            now=self.now,
            reserved=self.reserved,
            started=self._ends,
            others=[other for _, other in self.planned],
            sooner=self.preempting.sooner(job) if self.preempting.is_possible else {},
        ).find(job, queue.pool)
        if planned is not None:
            planned = self._with_its_cost(planned)
            self.trial.hold(job.id, planned.held)
            self.planned.append((line, planned))

    def _with_its_cost(self, planned: PlannedAllocation) -> PlannedAllocation:
        """The planned start with its cost; without held resources if it rests on predictions and its job has not waited
        for long."""
        snapshot, job = self.snapshot, planned.job
        cost = idle_gpu_seconds(planned, self.now, snapshot.ordering.unknown_seconds)
        is_firm = math.isfinite(planned.at) and planned.is_firm
        if is_firm:
            return replace(planned, idle_gpu_seconds=cost, latest_at=self._latest_start(job))
        if self.now - aged_from(job) >= snapshot.backfill.hold_after_seconds:
            return replace(planned, idle_gpu_seconds=cost)
        return replace(planned, idle_gpu_seconds=cost, held=Allocation(grants=(), model=planned.held.model))

    def _latest_start(self, job: Job) -> float:
        """The time until which jobs behind may delay a firm planned start: a job may wait for some times as long as it
        runs, so that short jobs are protected soon. A gang needs many GPUs at once, and is not delayed."""
        if job.request.is_gang or job.time_limit_seconds is None or not self.snapshot.backfill.slack:
            return -math.inf
        return aged_from(job) + self.snapshot.backfill.slack * job.time_limit_seconds

    def allow_delays(self) -> None:
        """Opens the slack of planned starts to the jobs behind, now that every line has its planned starts. It stays
        closed while a gang has a planned start on the same GPU model, or another one depends on the GPUs."""
        depending = Counter(gpu for _, planned in self.planned for gpu in planned.allocation.gpus)
        gangs = {planned.allocation.model for _, planned in self.planned if planned.job.request.is_gang}
        self._delayable = {
            planned.job.id
            for _, planned in self.planned
            if planned.allocation.model not in gangs and all(depending[gpu] == 1 for gpu in planned.allocation.gpus)
        }

    def _find_place(self, queue: Queue, job: Job) -> Allocation | None:
        return find_open_place(self.reserved, self._fleet, job, queue, end_if_started(job, self.now))

    def _backfill(self, queue: Queue, job: Job) -> Allocation | None:
        """Start the job on resources held for planned starts, if the job ends in time or can be preempted in time."""
        end = end_if_started(job, self.now)
        lifted = [
            number
            for number, (_, planned) in enumerate(self.planned)
            if planned.held.grants
            and planned.job.id not in self.promised
            and (
                (end <= self._usable_until(planned) and math.isfinite(end))
                or self.preempting.can_reclaim(job, planned)
                or self._is_ranked_before(queue, job, planned.job)
            )
        ]
        if not lifted:
            return None
        for number in lifted:
            self.trial.lift(self.planned[number][1].job.id)
        allocation = self._find_place(queue, job)
        if allocation is not None:
            self.trial.start(job, allocation)
        for number in lifted:
            line, planned = self.planned[number]
            if allocation is not None:
                planned = still_held(self._fleet, planned)
                self.planned[number] = (line, planned)
            self.trial.hold(planned.job.id, planned.held)
        return allocation

    def _usable_until(self, planned: PlannedAllocation) -> float:
        """When a job must have ended that starts on the resources held for a planned start."""
        return planned.guaranteed_at if planned.job.id in self._delayable else planned.at

    def _is_ranked_before(self, queue: Queue, job: Job, other: Job) -> bool:
        """Whether the job ranks before the other in their queue. If the order of a queue preempts, resources held for a
        job do not stop a job that ranks before it in another line of the queue: that job would preempt it at once.
        """
        if other.queue != queue.name or not self.is_ranked(queue):
            return False
        own, others = self.preempting.rank_of(job), self.preempting.rank_of(other)
        return own is not None and others is not None and own.place < others.place

    # ---------------------------------------------------------------- preemptions

    def start_or_preempt(self, queue: Queue, job: Job) -> bool:
        return self.start(queue, job) or self.preempt_for(queue, job)

    def could_preempt_for(self, job: Job) -> bool:
        """Whether running jobs might be preempted for the job, or for one behind it in its line."""
        return self._may_preempt and self.preempting.could_help(job)

    def preempt_for(self, queue: Queue, job: Job) -> bool:
        """Make room for a job that has none: by jobs that are leaving already, else by the cheapest victims.

        No job is preempted if elastic jobs can make the room: to shrink costs less than to be interrupted, and elastic
        jobs shrink for every waiting job.
        """
        if not self._may_preempt or not job.request.wants_gpu:
            return False
        if self.promise(queue, job):
            return True
        with self.trial.without([self._coming.left()]):
            if self._would_fit_beside_elastic(queue, job):
                return False
            victims = self.preempting.victims(self.reserved.widest(job, queue.pool, end_if_started(job, self.now)))
        if not victims or not self.promise(queue, job, [victim.job for victim in victims]):
            return self.move_for(queue, job)
        self.preemptions += self.preempting.leave(victims, job)
        return True

    def move_for(self, queue: Queue, job: Job) -> bool:
        """Move running jobs to other nodes, where there is room enough for the job but not in one place."""
        if not self._may_preempt or not self._moves.could_help(queue):
            return False
        with self.trial.without([self._coming.left()]):
            found = self._moves.find(queue, job)
        if found is None or not self.promise(queue, job, [victim.job for victim in found.victims], found.moves):
            return False
        self.preemptions += self.preempting.leave(found.victims, job)
        return True

    def promise(self, queue: Queue, job: Job, victims: Sequence[Job] = (), moves: Sequence[Move] = ()) -> bool:
        """Promise the job the place that it has when all leaving jobs are gone; the free part of it is held."""
        if not victims and not moves and not self._coming.has_gpus:
            return False
        leaving = (*self.preempting.leaving.values(), *victims)
        going = (*victims, *(move.job for move in moves))
        released = [self._coming.left(), *(victim.allocation for victim in going if victim.allocation)]
        with self.trial.without(released, leaving), self.trial.taken([move.to for move in moves]):
            # When the victims are gone, the resources that they held may be owed to other queues.
            allocation = self._find_place(queue, job) if owed(self.snapshot, job, self.now) is None else None
        if allocation is None:
            return False
        nodes = {grant.node for grant in allocation.grants}
        leaving = (*leaving, *self.preempting.moving.values(), *going)
        at = self.now + max((victim.grace_seconds for victim in leaving if _is_on(victim, nodes)), default=0.0)
        for victim in going:
            self._coming.add(victim)
        kept = [allocation, *self._apply_moves(job, moves)]
        allocations = replace(allocation, grants=tuple(grant for part in kept for grant in part.grants))
        held = free_part(self._fleet, allocations)
        self._coming.use(allocations, held)
        self.trial.promise(job, held)
        planned = PlannedAllocation(job=job, at=at, allocation=allocation, held=held, is_firm=False)
        self.promised[job.id] = (line_of(job), planned)
        self.planned.append((line_of(job), planned))
        return True

    def _apply_moves(self, for_job: Job, moves: Iterable[Move]) -> Iterator[Allocation]:
        """Move jobs whose new place is free already. Yields the places of the others: they are held until those jobs
        can be moved."""
        for move in moves:
            assert move.job.allocation is not None
            if free_part(self._fleet, move.to).total_gpu_milli < move.to.total_gpu_milli:
                self.preempting.moving_later.add(move.job.id)
                yield move.to
                continue
            both = replace(move.job, allocation=together(move.job.allocation, move.to))
            self.trial.resize(move.job, both)
            self.preemptions.append(self.preempting.move(move.job, move.to, for_job))

    def _would_fit_beside_elastic(self, queue: Queue, job: Job) -> bool:
        """Whether the job would have room if every elastic job shrank to its minimum."""
        if not self.snapshot.scaling.enabled or not self.snapshot.elastic:
            return False
        able = [item for item in scalable_jobs(self.snapshot) if item.spare or item.is_releasing]
        with self.snapshot.trial() as trial:
            for item in able:
                trial.resize(item.job, item.at_its_least())
            return bool(able) and self._find_place(queue, job) is not None


def _is_on(job: Job, nodes: Iterable[str]) -> bool:
    return job.allocation is not None and any(grant.node in nodes for grant in job.allocation.grants)
