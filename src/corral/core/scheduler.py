"""One scheduling cycle: from a picture of the cluster and the time to a plan. Nothing else goes in, nothing is changed.

The order between lines is that of how long their first job has been waiting, after those who ask for what is
guaranteed to their queue; within a line it is the queue's policy.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from corral.core.claims import IN_TURN, Claim, can_be_kept, claim_of
from corral.core.fleet import Domain
from corral.core.guaranteeing import turn_of
from corral.core.lifecycle import together
from corral.core.lines import LineCursor, LineKey, line_of
from corral.core.model import Allocation, Blocking, Job, JobState, Queue
from corral.core.moving import Move, Moving
from corral.core.ordering import POLICIES
from corral.core.placing import could_ever_fit
from corral.core.plan import Plan, PlannedStart, Preemption, Resize, Start
from corral.core.preempting import Preempting, claimants, rank_of
from corral.core.protecting import (
    ProtectedStart,
    Return,
    end_if_started,
    free_part,
    is_limited,
    likely_end_if_started,
    protect,
    still_held,
)
from corral.core.reservations import Reserved, find_open_place
from corral.core.rules import all_reasons, first_reason, owed
from corral.core.scaling import Scalable, Scaling, Wanted, make_room, scalable_jobs
from corral.core.snapshot import ClusterSnapshot
from corral.core.trial import Trial
from corral.core.vacating import Vacating

#: Sums of times are exact to less than this: who might just be gone in time is looked at.
_ROUNDING_SECONDS = 0.001


def schedule(snapshot: ClusterSnapshot, now: float) -> Plan:
    """Decide what starts now, where, and what is promised to the first job that waits in each line."""
    with snapshot.trial() as trial:
        cycle = _Cycle(snapshot, trial, now)
        # 1. What others gave up for somebody is his before anybody else's.
        cycle.keep_promises()
        # 2. In order, until the first job of each line that finds no room, and for which nobody has to make any. It
        #    gets a protected start.
        blocked = cycle.start_in_order()
        # 3. Behind it, whatever does not delay a protected start; in strict lines nothing. The next few of each line
        #    may get one, too.
        cycle.protect_more(blocked)
        cycle.backfill(blocked)
        plan = cycle.plan()
        # 4. Elastic jobs: what they give back for those who wait, and what they take of the rest.
        return _scaled(cycle, plan, blocked) if cycle.is_scaling(plan) else plan


def _scaled(cycle: _Cycle, plan: Plan, blocked: Sequence[_Walk]) -> Plan:
    # Who is preempted gives back everything, and is not told to give back a part of it besides.
    going = {preemption.job_id for preemption in plan.preemptions}
    items = [item for item in scalable_jobs(cycle.snapshot) if item.job.id not in going]
    for_others = cycle.room_for_others(items)
    spared = {resize.job_id for resize in for_others}
    left = [item for item in items if item.job.id not in spared]
    scaling = Scaling(
        snapshot=cycle.snapshot,
        trial=cycle.trial,
        plan=plan,
        crowded=cycle.crowded(blocked),
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
    #: jobs that have a protected start, if it could be told where they could ever run
    protected: int = 0


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

    def keep_promises(self) -> None:
        """Jobs that others were preempted for start, or keep what is free of it until the last of them is gone."""
        if not self.snapshot.preemption.enabled:
            return
        for job in claimants(self.snapshot, self.now):
            queue = self.snapshot.queues[job.queue]
            if job.not_before > self.now or first_reason(self.snapshot, job, self.now) is not None:
                continue
            if not self._start(queue, job) and not self._promise(queue, job):
                self._get_way_by_moves(queue, job)

    def start_in_order(self) -> list[_Walk]:
        """Start jobs in order; the lines that came to a job without room, which now has its protected start."""
        walks = [self._walk(key) for key in sorted(self.snapshot.lines) if key.queue in self.snapshot.queues]
        waiting = [(self._turn(walk), number) for number, walk in enumerate(walks) if walk.cursor.peek()]
        heapq.heapify(waiting)
        blocked = []
        while waiting:
            turn, number = waiting[0]
            walk = walks[number]
            if turn != (present := self._turn(walk)):
                # What it was entitled to has gone to another line of its queue meanwhile.
                heapq.heapreplace(waiting, (present, number))
                continue
            job = walk.cursor.pop()
            assert job is not None
            if not self._goes_on_behind(walk, job):
                blocked.append(walk)
                heapq.heappop(waiting)
            elif walk.cursor.peek() is None:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (self._turn(walk), number))
        return blocked

    def protect_more(self, blocked: Sequence[_Walk]) -> None:
        """Protect the next jobs of each line, as many as are to be, or start them. Where nothing is free nobody passes,
        and nobody needs it."""
        most = self.snapshot.backfill.protected
        for walk in blocked if most > 1 else ():
            if walk.queue.blocking is not Blocking.BACKFILL or not self._has_room(walk):
                continue
            while walk.protected < most and (job := walk.cursor.pop()) is not None:
                if not self._is_passed_over(walk, job) and not self._start_or_get_way(walk, job):
                    if self._could_ever_fit(walk.queue, job):
                        self._protect(walk, job)
                    else:
                        walk.cursor.skip_like(job)

    def backfill(self, blocked: Sequence[_Walk]) -> None:
        for walks in self._ordered_together(blocked):
            left = [(walk, self._has_room(walk)) for walk in walks if walk.queue.blocking is Blocking.BACKFILL]
            while left:
                walk, has_room = left[0] if len(left) == 1 else min(left, key=lambda item: self._place(item[0]))
                job = walk.cursor.peek()
                if job is None or not (has_room or self._could_get_way(job)):
                    left.remove((walk, has_room))
                    continue
                walk.cursor.pop()
                if not self._is_passed_over(walk, job) and not self._start_or_get_way(walk, job):
                    # Room only shrinks within a cycle: no other job of this shape will find a place either.
                    walk.cursor.skip_like(job, self._too_long_to_pass(walk))

    def plan(self) -> Plan:
        wakes = [at for at in (self._wake_at, self._preempting.wake_at) if at is not None]
        return Plan(
            at=self.now,
            starts=tuple(self._starts),
            preemptions=tuple(self._preemptions),
            planned=tuple(
                PlannedStart(
                    job_id=protected.job.id,
                    line=line,
                    at=protected.at,
                    nodes=tuple(grant.node for grant in protected.allocation.grants),
                    held=protected.held,
                    is_firm=protected.is_firm,
                )
                for line, protected in self._protected
            ),
            claims=tuple(self._claims),
            wake_at=min(wakes, default=None),
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

    def crowded(self, blocked: Sequence[_Walk]) -> frozenset[Domain]:
        """The pools and models that somebody waits for."""
        keys = {walk.key for walk in blocked} | {key for key, _ in self._promised.values()}
        return frozenset(
            index.domain
            for key in keys
            if key.model != "cpu"
            for index in self._fleet.domains_of(self.snapshot.queues[key.queue].pool, _models_of(key))
        )

    def _if_given_back(self, items: Sequence[Scalable]) -> Wanted:
        with self.snapshot.trial() as supposed:
            for item in items:
                supposed.resize(item.job, item.at_its_least())
            cycle = _Cycle(self.snapshot, supposed, self.now, after=self)
            blocked = cycle.start_in_order()
            cycle.protect_more(blocked)
            cycle.backfill(blocked)
            return Wanted(
                starts=cycle._starts[len(self._starts) :],
                promised=[
                    (protected.job, protected.allocation)
                    for _, protected in cycle._protected
                    if protected.job.id not in self._promised
                ],
            )

    @contextmanager
    def _without_promises(self) -> Iterator[None]:
        """Nothing is kept for anybody: those to whom it was promised are planned anew within."""
        lifted = [protected for _, protected in self._protected if protected.job.id not in self._promised]
        for protected in lifted:
            self.trial.lift(protected.job.id)
        yield
        for protected in lifted:
            self.trial.hold(protected.job.id, protected.held)

    def _goes_on_behind(self, walk: _Walk, job: Job) -> bool:
        """Start a job in order; whether the walk through its line goes on behind it."""
        if job.id not in self._promised:
            if self._is_passed_over(walk, job) or self._start(walk.queue, job):
                return True
            if not self._get_way(walk.queue, job):
                if self.snapshot.backfill.protected <= 1:
                    # Those like it find no room either. Else the next of them may be protected, too.
                    walk.cursor.skip_like(job, self._too_long_to_pass(walk))
                if not self._could_ever_fit(walk.queue, job):
                    return True
                self._protect(walk, job)
                return False
        # Others make room for it already. In strict lines nothing passes it all the same.
        return walk.queue.blocking is Blocking.BACKFILL

    def _start_or_get_way(self, walk: _Walk, job: Job) -> bool:
        return self._start(walk.queue, job) or self._get_way(walk.queue, job)

    def _turn(self, walk: _Walk) -> tuple[bool, float, float, int]:
        head = walk.cursor.peek()
        assert head is not None
        is_not_entitled, since, serial = turn_of(self.snapshot, walk.queue, head, self.now)
        if not self._is_ranked(walk.queue):
            return (is_not_entitled, since, 0.0, serial)
        # Its lines have one turn, and one order: else a gang would take what a single job takes back at once.
        since = self._turns.setdefault(walk.queue.name, since)
        return (is_not_entitled, since, self._place(walk), serial)

    def _place(self, walk: _Walk) -> float:
        """Of the next job of a line in the order of its queue, where that preempts; the last when there is none."""
        head = walk.cursor.peek()
        rank = None if head is None else rank_of(self.snapshot, walk.queue, head, self.now)
        return math.inf if rank is None else rank.place

    def _ordered_together(self, walks: Sequence[_Walk]) -> list[list[_Walk]]:
        """Lines of one queue whose order preempts are gone through as one, all others one after the other."""
        groups: dict[str | LineKey, list[_Walk]] = {}
        for walk in walks:
            groups.setdefault(walk.key.queue if self._is_ranked(walk.queue) else walk.key, []).append(walk)
        return list(groups.values())

    def _is_ranked(self, queue: Queue) -> bool:
        """Whether the order of the queue preempts: then it is one order for all its lines."""
        return self.snapshot.preemption.enabled and queue.preempts and POLICIES[queue.policy].rank is not None

    # ---------------------------------------------------------------- making way

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

    # ---------------------------------------------------------------- one job

    def _is_passed_over(self, walk: _Walk, job: Job) -> bool:
        return job.id in self._starting or job.id in self._promised or self._is_held_back(walk, job)

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
        """Give the job its turn under the shared limits and mounts that hold it, if nothing of its own holds it too."""
        reasons = all_reasons(self.snapshot, job, self.now)
        if any(reason.rule not in IN_TURN for reason in reasons):
            return
        free = [reason for reason in reasons if not any(claim.is_for(job, reason) for claim in self._claims)]
        if free and can_be_kept(free) and self._could_ever_fit(walk.queue, job):
            starting = [self.snapshot.jobs[start.job_id] for start in self._starts]
            started = sorted(((end_if_started(one, self.now), one) for one in starting), key=lambda item: item[0])
            claims = (claim_of(self.snapshot, job, reason, self.now, started) for reason in free)
            self._claims += [claim for claim in claims if claim.is_kept]

    def _could_ever_fit(self, queue: Queue, job: Job) -> bool:
        return could_ever_fit(self._fleet, self.reserved.ever(job, queue.pool), queue.pool)

    def _find_place(self, queue: Queue, job: Job) -> Allocation | None:
        return find_open_place(self.reserved, self._fleet, job, queue, end_if_started(job, self.now))

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
            sooner=self._preempting.sooner(job) if self._preempting.is_possible else {},
            reserved=self.reserved,
        )
        walk.protected += 1
        if protected is not None:
            self.trial.hold(job.id, protected.held)
            self._protected.append((walk.key, protected))


def _models_of(key: LineKey) -> tuple[str, ...]:
    return () if key.model == "any" else tuple(key.model.split("|"))


def _is_on(job: Job, nodes: Iterable[str]) -> bool:
    return job.allocation is not None and any(grant.node in nodes for grant in job.allocation.grants)
