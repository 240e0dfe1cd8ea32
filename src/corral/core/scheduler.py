"""One scheduling cycle: from a picture of the cluster and the time to a plan. Nothing else goes in, nothing is changed.

The order between lines is that of how long their first job has been waiting; within a line it is the queue's policy.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from corral.core.claims import SHARED, Claim, can_be_kept, claim_of
from corral.core.fleet import Domain
from corral.core.lines import LineCursor, LineKey
from corral.core.model import Allocation, Blocking, Job, JobState, Queue
from corral.core.placing import could_ever_fit
from corral.core.plan import Plan, PlannedStart, Resize, Start
from corral.core.protecting import ProtectedStart, Return, end_if_started, protect, still_held
from corral.core.reservations import Reserved, find_open_place
from corral.core.rules import all_reasons, first_reason
from corral.core.scaling import Scalable, Scaling, Wanted, make_room, scalable_jobs
from corral.core.snapshot import ClusterSnapshot, Trial

#: Sums of times are exact to less than this: who might just be gone in time is looked at.
_ROUNDING_SECONDS = 0.001


def schedule(snapshot: ClusterSnapshot, now: float) -> Plan:
    """Decide what starts now, where, and what is promised to the first job that waits in each line."""
    with snapshot.trial() as trial:
        cycle = _Cycle(snapshot, trial, now)
        # 1. In order, until the first job of each line that finds no room. It gets a protected start.
        blocked = cycle.start_in_order()
        # 2. Behind it, whatever does not delay a protected start; in strict lines nothing.
        cycle.backfill(blocked)
        plan = cycle.plan()
        # 3. Elastic jobs: what they give back for those who wait, and what they take of the rest.
        return _scaled(cycle, plan, blocked) if cycle.is_scaling(plan) else plan


def _scaled(cycle: _Cycle, plan: Plan, blocked: Sequence[_Walk]) -> Plan:
    items = scalable_jobs(cycle.snapshot)
    for_others = cycle.room_for_others(items)
    spared = {resize.job_id for resize in for_others}
    left = [item for item in items if item.job.id not in spared]
    scaling = Scaling(
        snapshot=cycle.snapshot,
        trial=cycle.trial,
        plan=plan,
        crowded=cycle.domains_of(blocked),
        reserved=cycle.reserved,
        now=cycle.now,
    )
    starts = scaling.widened(plan.starts)
    resizes = (*for_others, *scaling.unused(left), *scaling.grown(left))
    wakes = [at for at in (plan.wake_at, scaling.wake_at) if at is not None]
    return replace(plan, starts=starts, resizes=resizes, wake_at=min(wakes, default=None))


@dataclass(slots=True)
class _Walk:
    """How far a cycle has come in one line."""

    key: LineKey
    queue: Queue
    cursor: LineCursor


class _Cycle:
    def __init__(self, snapshot: ClusterSnapshot, trial: Trial, now: float, after: _Cycle | None = None) -> None:
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

    def start_in_order(self) -> list[_Walk]:
        """Start jobs in order; the lines that came to a job without room, which now has its protected."""
        walks = [self._walk(key) for key in sorted(self.snapshot.lines) if key.queue in self.snapshot.queues]
        waiting = [(_waiting_since(head), number) for number, walk in enumerate(walks) if (head := walk.cursor.peek())]
        heapq.heapify(waiting)
        blocked = []
        while waiting:
            walk = walks[waiting[0][1]]
            job = walk.cursor.pop()
            assert job is not None
            if not self._is_passed_over(walk, job) and not self._start(walk, job):
                walk.cursor.skip_like(job, self._too_long_to_pass(walk))
                if self._could_ever_fit(walk, job):
                    self._protect(walk, job)
                    blocked.append(walk)
                    heapq.heappop(waiting)
                    continue
            head = walk.cursor.peek()
            if head is None:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (_waiting_since(head), waiting[0][1]))
        return blocked

    def backfill(self, blocked: Sequence[_Walk]) -> None:
        for walk in blocked:
            if walk.queue.blocking is not Blocking.BACKFILL or not self._has_room(walk):
                continue
            for job in walk.cursor:
                if not self._is_passed_over(walk, job) and not self._start(walk, job):
                    # Room only shrinks within a cycle: no other job of this shape will find a place either.
                    walk.cursor.skip_like(job, self._too_long_to_pass(walk))

    def plan(self) -> Plan:
        return Plan(
            at=self.now,
            starts=tuple(self._starts),
            planned=tuple(
                PlannedStart(
                    job_id=protected.job.id,
                    line=line,
                    at=protected.at,
                    nodes=tuple(grant.node for grant in protected.allocation.grants),
                    held=protected.held,
                )
                for line, protected in self._protected
            ),
            claims=tuple(self._claims),
            wake_at=self._wake_at,
        )

    def is_scaling(self, plan: Plan) -> bool:
        """Whether there are elastic jobs at all: to most cycles they cost nothing."""
        if not self.snapshot.scaling.enabled:
            return False
        return bool(self.snapshot.elastic) or any(
            self.snapshot.jobs[start.job_id].elastic is not None for start in plan.starts
        )

    def room_for_others(self, items: Sequence[Scalable]) -> list[Resize]:
        """What elastic jobs must give back so that as many start as would if each of them had its minimum."""
        able = [item for item in items if item.spare or item.coming]
        if not able or len(self._starts) == self.snapshot.count(JobState.QUEUED):
            return []
        with self._without_promises():
            return make_room(self.snapshot, able, self._if_given_back(able), self.now)

    def domains_of(self, walks: Sequence[_Walk]) -> frozenset[Domain]:
        """The pools and models that these lines wait for."""
        return frozenset(
            index.domain
            for walk in walks
            if walk.key.model != "cpu"
            for index in self._fleet.domains_of(walk.queue.pool, _models_of(walk.key))
        )

    def _if_given_back(self, items: Sequence[Scalable]) -> Wanted:
        with self.snapshot.trial() as supposed:
            for item in items:
                supposed.resize(item.job, item.at_its_least())
            cycle = _Cycle(self.snapshot, supposed, self.now, after=self)
            cycle.backfill(cycle.start_in_order())
            return Wanted(
                starts=cycle._starts[len(self._starts) :],
                promised=[(protected.job, protected.allocation) for _, protected in cycle._protected],
            )

    @contextmanager
    def _without_promises(self) -> Iterator[None]:
        """Nothing is kept for anybody: those to whom it was promised are planned anew within."""
        for _, protected in self._protected:
            self.trial.lift(protected.job.id)
        yield
        for _, protected in self._protected:
            self.trial.hold(protected.job.id, protected.held)

    def _is_passed_over(self, walk: _Walk, job: Job) -> bool:
        return job.id in self._starting or self._is_held_back(walk, job)

    def _has_room(self, walk: _Walk) -> bool:
        """Whether anything at all is free or could be lent in the pool:

        A full pool needs no look at thousands of jobs.
        """
        if walk.key.model == "cpu":
            return True
        indexes = self._fleet.domains_of(walk.queue.pool, ())
        return any(index.free_gpus or index.partial for index in indexes) or any(
            protected.held.gpus for _, protected in self._protected
        )

    def _walk(self, key: LineKey) -> _Walk:
        snapshot, now, queue = self.snapshot, self.now, self.snapshot.queues[key.queue]
        cursor = snapshot.lines[key].cursor(
            lambda user: snapshot.score(user, key.model, now), self.reserved.kind_of(queue.pool)
        )
        return _Walk(key=key, queue=queue, cursor=cursor)

    def _is_held_back(self, walk: _Walk, job: Job) -> bool:
        """Whether a limit, a quota or a back-off holds the job, or another's claim on a limit that both share.

        Such a job blocks nobody behind it, unless it has a claim itself.
        """
        if job.not_before > self.now:
            self._wake_at = min(self._wake_at or job.not_before, job.not_before)
            return True
        if first_reason(self.snapshot, job, self.now) is not None:
            self._claim(walk, job)
        elif all(claim.lets_pass(end_if_started(job, self.now)) for claim in self._claims if claim.concerns(job)):
            return False
        walk.cursor.skip_own_like(job)
        return True

    def _claim(self, walk: _Walk, job: Job) -> None:
        """Give the job its turn under the shared limits that hold it, if nothing of its own holds it too."""
        reasons = all_reasons(self.snapshot, job, self.now)
        if any(reason.rule not in SHARED for reason in reasons):
            return
        free = [reason for reason in reasons if not any(claim.is_for(job, reason) for claim in self._claims)]
        if free and can_be_kept(free) and self._could_ever_fit(walk, job):
            starting = [self.snapshot.jobs[start.job_id] for start in self._starts]
            started = sorted(((end_if_started(one, self.now), one) for one in starting), key=lambda item: item[0])
            self._claims += [claim_of(self.snapshot, job, reason, self.now, started) for reason in free]

    def _could_ever_fit(self, walk: _Walk, job: Job) -> bool:
        return could_ever_fit(self._fleet, self.reserved.ever(job, walk.queue.pool), walk.queue.pool)

    def _find_place(self, walk: _Walk, job: Job) -> Allocation | None:
        return find_open_place(self.reserved, self._fleet, job, walk.queue, end_if_started(job, self.now))

    def _start(self, walk: _Walk, job: Job) -> bool:
        allocation = self._find_place(walk, job)
        if allocation is not None:
            self.trial.start(job, allocation)
        else:
            allocation = self._start_before_others(walk, job)
        if allocation is None:
            return False
        self._starts.append(Start(job_id=job.id, allocation=allocation))
        insort(self._returns, (end_if_started(job, self.now), job.serial, allocation), key=lambda item: item[:2])
        return True

    def _start_before_others(self, walk: _Walk, job: Job) -> Allocation | None:
        """Start the job on what is held for others, if it is gone before they need it."""
        end = end_if_started(job, self.now)
        lifted = [n for n, (_, held) in enumerate(self._protected) if end <= held.at and end < float("inf")]
        if not lifted:
            return None
        for number in lifted:
            self.trial.lift(self._protected[number][1].job.id)
        allocation = self._find_place(walk, job)
        if allocation is not None:
            self.trial.start(job, allocation)
        for number in lifted:
            line, protected = self._protected[number]
            if allocation is not None:
                protected = still_held(self._fleet, protected)
                self._protected[number] = (line, protected)
            self.trial.hold(protected.job.id, protected.held)
        return allocation

    def _too_long_to_pass(self, walk: _Walk) -> float:
        """For whom nothing that is held for others could be lent: who stays beyond the last planned start, and into the
        last window that is reserved.

        Where there is no room but for that, so many seconds are too many, whoever asks for as much.
        """
        last = max((held.at for _, held in self._protected), default=-math.inf)
        last = max(last, self.reserved.last_since(walk.queue.pool))
        return last - self.now + _ROUNDING_SECONDS

    def _protect(self, walk: _Walk, job: Job) -> None:
        protected = protect(
            self.snapshot,
            job,
            walk.queue.pool,
            self.now,
            started=self._returns,
            others=[protected for _, protected in self._protected],
            reserved=self.reserved,
        )
        if protected is not None:
            self.trial.hold(job.id, protected.held)
            self._protected.append((walk.key, protected))


def _models_of(key: LineKey) -> tuple[str, ...]:
    return () if key.model == "any" else tuple(key.model.split("|"))


def _waiting_since(job: Job) -> tuple[float, int]:
    return (job.created_at if job.queued_at is None else job.queued_at, job.serial)
