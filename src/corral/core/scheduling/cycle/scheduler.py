"""One scheduling cycle: from a picture of the cluster and the time to a plan. Nothing else goes in, nothing is changed.

The order between lines is that of how long their first job has been waiting, after those who ask for what is
guaranteed to their queue; within a line it is the queue's policy.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from corral.core.model import Blocking, Job, JobState
from corral.core.scheduling.backfill.planned_start import end_if_started
from corral.core.scheduling.cycle.job_decisions import Giving, Walk
from corral.core.scheduling.elastic.resize import Scalable, Scaling, Wanted, make_room, scalable_jobs
from corral.core.scheduling.limits.claims import IN_TURN, can_be_kept, claim_of
from corral.core.scheduling.limits.guarantees import turn_of
from corral.core.scheduling.limits.hold_rules import all_reasons, first_reason
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.plan.plan import Plan, PlannedStart, Resize
from corral.core.scheduling.preemption.preemption import claimants, rank_of
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import Domain
from corral.core.snapshot.waiting_lines import LineKey

#: Sums of times are exact to less than this: who might just be gone in time is looked at.
_ROUNDING_SECONDS = 0.001


def schedule(snapshot: ClusterSnapshot, now: float) -> Plan:
    """Decide what starts now, where, and what is promised to the first job that waits in each line."""
    with snapshot.trial() as trial:
        cycle = Cycle(snapshot, trial, now)
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


def _scaled(cycle: Cycle, plan: Plan, blocked: Sequence[Walk]) -> Plan:
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


class Cycle(Giving):
    """The walk through all lines: who is looked at, in which order, and who is passed over."""

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

    def start_in_order(self) -> list[Walk]:
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

    def protect_more(self, blocked: Sequence[Walk]) -> None:
        """Protect the next jobs of each line, as many as are to be, or start them. Where nothing is free, or all of it
        is kept already, there is nothing that could be kept for them.

        Under an order by score, so many of other users besides, one of each: all jobs of the user with the lowest score
        stand in front, and with theirs alone protected others' large jobs would be kept waiting by small ones.
        """
        most = self.snapshot.backfill.protected
        for walk in blocked if most > 1 else ():
            if walk.queue.blocking is not Blocking.BACKFILL:
                continue
            in_all = 2 * most if POLICIES[walk.queue.policy].uses_score else most
            while walk.protected < in_all and self._has_free(walk) and (job := walk.cursor.pop()) is not None:
                if not self._is_passed_over(walk, job) and not self._start_or_get_way(walk, job):
                    if walk.protected >= most and job.user in walk.protected_users:
                        walk.cursor.skip_own_longer(job, self._too_long_to_pass(walk))
                    elif self._could_ever_fit(walk.queue, job):
                        self._protect(walk, job)
                    else:
                        walk.cursor.skip_like(job)

    def backfill(self, blocked: Sequence[Walk]) -> None:
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

    def crowded(self, blocked: Sequence[Walk]) -> frozenset[Domain]:
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
            cycle = Cycle(self.snapshot, supposed, self.now, after=self)
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

    def _goes_on_behind(self, walk: Walk, job: Job) -> bool:
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

    def _turn(self, walk: Walk) -> tuple[bool, float, float, int]:
        head = walk.cursor.peek()
        assert head is not None
        is_not_entitled, since, serial = turn_of(self.snapshot, walk.queue, head, self.now)
        if not self._is_ranked(walk.queue):
            return (is_not_entitled, since, 0.0, serial)
        # Its lines have one turn, and one order: else a gang would take what a single job takes back at once.
        since = self._turns.setdefault(walk.queue.name, since)
        return (is_not_entitled, since, self._place(walk), serial)

    def _place(self, walk: Walk) -> float:
        """Of the next job of a line in the order of its queue, where that preempts; the last when there is none."""
        head = walk.cursor.peek()
        rank = None if head is None else rank_of(self.snapshot, walk.queue, head, self.now)
        return math.inf if rank is None else rank.place

    def _ordered_together(self, walks: Sequence[Walk]) -> list[list[Walk]]:
        """Lines of one queue whose order preempts are gone through as one, all others one after the other."""
        groups: dict[str | LineKey, list[Walk]] = {}
        for walk in walks:
            groups.setdefault(walk.key.queue if self._is_ranked(walk.queue) else walk.key, []).append(walk)
        return list(groups.values())

    def _is_passed_over(self, walk: Walk, job: Job) -> bool:
        return job.id in self._starting or job.id in self._promised or self._is_held_back(walk, job)

    def _has_room(self, walk: Walk) -> bool:
        """Whether anything at all is free or could be lent in the pool:

        A full pool needs no look at thousands of jobs.
        """
        return self._has_free(walk) or any(protected.held.gpus for _, protected in self._protected)

    def _has_free(self, walk: Walk) -> bool:
        if walk.key.model == "cpu":
            return True
        return any(index.free_gpus or index.partial for index in self._fleet.domains_of(walk.queue.pool, ()))

    def _walk(self, key: LineKey) -> Walk:
        snapshot, now, queue = self.snapshot, self.now, self.snapshot.queues[key.queue]
        cursor = snapshot.lines[key].cursor(
            lambda user: snapshot.score(user, key.model, now), self.reserved.kind_of(queue.pool)
        )
        return Walk(key=key, queue=queue, cursor=cursor)

    def _is_held_back(self, walk: Walk, job: Job) -> bool:
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

    def _claim(self, walk: Walk, job: Job) -> None:
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

    def _too_long_to_pass(self, walk: Walk) -> float:
        """For whom nothing that is held for others could be lent: who stays beyond the last planned start, and into the
        last window that is reserved.

        Where there is no room but for that, so many seconds are too many, whoever asks for as much.
        """
        last = max((held.at for _, held in self._protected), default=-math.inf)
        last = max(last, self.reserved.last_since(walk.queue.pool))
        return last - self.now + _ROUNDING_SECONDS


def _models_of(key: LineKey) -> tuple[str, ...]:
    return () if key.model == "any" else tuple(key.model.split("|"))
