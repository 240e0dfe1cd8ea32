"""One scheduling cycle: `schedule(snapshot, now)` returns a plan. It reads nothing else and changes nothing.

The waiting jobs of a queue stand in waiting lines: one per GPU model, single-node jobs and gangs apart. The queue's
policy orders each line. A cycle starts jobs in that order. Between lines it goes by how long the first job of a line
has been waiting; lines whose first job asks for GPUs that are guaranteed to its queue come first. The first job of a
line that finds no room blocks the line: it gets a planned start, and the free resources that it will need are held for
it. Then the jobs behind it are backfilled, if the queue allows that: a job may start if it delays no planned start.
Where preemption is enabled, a job without room may also preempt or move running jobs (`preemption`). Last, elastic jobs
shrink for waiting jobs and grow into idle GPUs (`elastic`).

`Cycle` decides in which order jobs are considered and which of them are passed over. `JobDecisions` decides about one
job at a time. Both work in a trial of the snapshot, which is undone when the plan is made: the caller applies the plan.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from corral.core.model import Blocking, Job, JobState, Queue
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.cycle.job_decisions import JobDecisions
from corral.core.scheduling.elastic.resize import Scalable, Scaling, Wanted, make_room, scalable_jobs
from corral.core.scheduling.limits.claims import CLAIMED_RULES, Claim, claim_of, may_have_claims
from corral.core.scheduling.limits.guarantees import turn_of
from corral.core.scheduling.limits.hold_rules import all_reasons, first_reason
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.plan.plan import Plan, PlannedStart, Resize
from corral.core.scheduling.preemption.preemption import claimants
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import Domain
from corral.core.snapshot.waiting_lines import CHECKS, LineCursor, LineKey

#: Sums of times are exact to less than this. A job that might just end in time is considered.
_ROUNDING_SECONDS = 0.001


def schedule(snapshot: ClusterSnapshot, now: float) -> Plan:
    """Decide which jobs start now and where, and the planned start of the first job that waits in each line."""
    with snapshot.trial() as trial:
        cycle = Cycle(JobDecisions(snapshot, trial, now))
        # 1. Resources freed by a preemption go to the job that caused it.
        cycle.keep_planned_starts()
        # 2. Start jobs in order, until the first job of each line that finds no room and can preempt no job. It gets a
        #    planned start.
        blocked = cycle.start_in_order()
        # 3. Behind it, start jobs that delay no planned start; in strict lines none. The next few jobs of each line
        #    may get a planned start too.
        cycle.plan_more(blocked)
        cycle.backfill(blocked)
        plan = cycle.plan()
        # 4. Elastic jobs shrink for waiting jobs, and grow into the GPUs that are left.
        return _scaled(cycle, plan, blocked) if cycle.is_scaling(plan) else plan


@dataclass(slots=True)
class Walk:
    """The progress of a cycle in one line."""

    key: LineKey
    queue: Queue
    cursor: LineCursor
    #: how many jobs of the line have a planned start, or could get none because no place can be named
    planned_starts: int = 0
    #: the users of those jobs
    planned_users: set[str] = field(default_factory=set)


def _scaled(cycle: Cycle, plan: Plan, blocked: Sequence[Walk]) -> Plan:
    # A job that is preempted releases all its GPUs: it is not resized besides.
    preempted = {preemption.job_id for preemption in plan.preemptions}
    decisions = cycle.decisions
    items = [item for item in scalable_jobs(decisions.snapshot) if item.job.id not in preempted]
    for_others = cycle.room_for_others(items)
    shrunk = {resize.job_id for resize in for_others}
    left = [item for item in items if item.job.id not in shrunk]
    scaling = Scaling(
        snapshot=decisions.snapshot,
        trial=decisions.trial,
        plan=plan,
        crowded=cycle.crowded(blocked),
        reserved=decisions.reserved,
        now=decisions.now,
    )
    starts = scaling.widened(plan.starts)
    resizes = (*for_others, *scaling.unused(left), *scaling.grown(left))
    wakes = [at for at in (plan.wake_at, scaling.wake_at) if at is not None]
    return replace(plan, starts=starts, resizes=resizes, wake_at=min(wakes, default=None))


class Cycle:
    """The walk through all lines: which job is considered next, and which jobs are passed over."""

    def __init__(self, decisions: JobDecisions) -> None:
        self.decisions = decisions
        self._snapshot = decisions.snapshot
        self._now = decisions.now
        self._fleet = decisions.snapshot.fleet
        self._reserved = decisions.reserved
        # The same objects as in the decisions: they are read for every job.
        self._starting = decisions.starting
        self._promised = decisions.promised
        self._claims: list[Claim] = []
        self._wake_at: float | None = self._reserved.next_edge
        #: by queue whose order preempts: when its first line had its turn
        self._turns: dict[str, float] = {}
        #: a cache of `_place`, by waiting job: it does not change within a cycle
        self._places: dict[str, float] = {}

    def keep_planned_starts(self) -> None:
        """Start the jobs that others were preempted for, or hold the freed resources until the last victim is gone."""
        if not self._snapshot.preemption.enabled:
            return
        decisions = self.decisions
        for job in claimants(self._snapshot, self._now):
            queue = self._snapshot.queues[job.queue]
            if job.not_before > self._now or first_reason(self._snapshot, job, self._now) is not None:
                continue
            if not decisions.start(queue, job) and not decisions.promise(queue, job):
                decisions.move_for(queue, job)

    def start_in_order(self) -> list[Walk]:
        """Start jobs in order. Returns the lines that are blocked by a job without room; it has a planned start now."""
        snapshot = self._snapshot
        walks = [self._walk(key) for key in sorted(snapshot.lines) if key.queue in snapshot.queues]
        waiting = [(self._turn(walk), number) for number, walk in enumerate(walks) if walk.cursor.peek()]
        heapq.heapify(waiting)
        blocked = []
        while waiting:
            turn, number = waiting[0]
            walk = walks[number]
            if turn != (present := self._turn(walk)):
                # Another line of the queue has used up the guarantee meanwhile.
                heapq.heapreplace(waiting, (present, number))
                continue
            job = walk.cursor.pop()
            assert job is not None
            if not self._continues_after(walk, job):
                blocked.append(walk)
                heapq.heappop(waiting)
            elif walk.cursor.peek() is None:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (self._turn(walk), number))
        return blocked

    def plan_more(self, blocked: Sequence[Walk]) -> None:
        """Start the next jobs of each line or give them planned starts, up to the configured number per line. Where no
        GPU is free, or all free GPUs are held already, nothing could be held for them.

        Under an order by score, as many jobs of other users get a planned start besides, one of each user: all jobs of
        the user with the lowest score stand in front, and with planned starts for these alone the large jobs of other
        users would be delayed by small ones.
        """
        most, decisions = self._snapshot.backfill.protected, self.decisions
        for walk in blocked if most > 1 else ():
            if walk.queue.blocking is not Blocking.BACKFILL:
                continue
            in_all = 2 * most if POLICIES[walk.queue.policy].uses_score else most
            while walk.planned_starts < in_all and self._has_free(walk) and (job := walk.cursor.pop()) is not None:
                if not self._is_passed_over(walk, job) and not decisions.start_or_preempt(walk.queue, job):
                    if walk.planned_starts >= most and job.user in walk.planned_users:
                        walk.cursor.skip_own_longer(job, self._too_long_to_pass(walk))
                    elif decisions.could_ever_fit(walk.queue, job):
                        self._plan_start(walk, job)
                    else:
                        walk.cursor.skip_like(job)

    def backfill(self, blocked: Sequence[Walk]) -> None:
        decisions = self.decisions
        decisions.allow_delays()
        for walks in self._ordered_together(blocked):
            left = [(walk, self._has_room(walk)) for walk in walks if walk.queue.blocking is Blocking.BACKFILL]
            while left:
                walk, has_room = left[0] if len(left) == 1 else min(left, key=lambda item: self._place(item[0]))
                job = walk.cursor.peek()
                if job is None or not (has_room or decisions.could_preempt_for(job)):
                    left.remove((walk, has_room))
                    continue
                walk.cursor.pop()
                if not self._is_passed_over(walk, job) and not decisions.start_or_preempt(walk.queue, job):
                    # Room only shrinks within a cycle: no other job of this shape will find a place either.
                    walk.cursor.skip_like(job, self._too_long_to_pass(walk))

    def plan(self) -> Plan:
        decisions = self.decisions
        wakes = [at for at in (self._wake_at, decisions.preempting.wake_at) if at is not None]
        return Plan(
            at=self._now,
            starts=tuple(decisions.starts),
            preemptions=tuple(decisions.preemptions),
            planned=tuple(
                PlannedStart(
                    job_id=planned.job.id,
                    line=line,
                    at=planned.guaranteed_at,
                    nodes=tuple(grant.node for grant in planned.allocation.grants),
                    held=planned.held,
                    is_firm=planned.is_firm,
                    idle_gpu_seconds=planned.idle_gpu_seconds,
                    slack_seconds=planned.slack_seconds,
                )
                for line, planned in decisions.planned
            ),
            claims=tuple(self._claims),
            wake_at=min(wakes, default=None),
        )

    # ---------------------------------------------------------------- elastic jobs

    def is_scaling(self, plan: Plan) -> bool:
        """Whether there are elastic jobs at all: in most cycles there are none, and scaling costs nothing."""
        if not self._snapshot.scaling.enabled:
            return False
        return bool(self._snapshot.elastic) or any(
            self._snapshot.jobs[start.job_id].elastic is not None for start in plan.starts
        )

    def room_for_others(self, items: Sequence[Scalable]) -> list[Resize]:
        """The resizes that let as many jobs start as would start if each elastic job had its minimum."""
        able = [item for item in items if item.spare or item.is_releasing]
        if not able or len(self.decisions.starts) == self._snapshot.count(JobState.QUEUED):
            return []
        with self._without_planned_starts():
            return make_room(self._snapshot, able, self._wanted_at_minimum(able), self._now)

    def crowded(self, blocked: Sequence[Walk]) -> frozenset[Domain]:
        """The pools and GPU models that jobs wait for."""
        keys = {walk.key for walk in blocked} | {key for key, _ in self._promised.values()}
        return frozenset(
            index.domain
            for key in keys
            if key.model != "cpu"
            for index in self._fleet.domains_of(self._snapshot.queues[key.queue].pool, _models_of(key))
        )

    def _wanted_at_minimum(self, items: Sequence[Scalable]) -> Wanted:
        """The starts and planned starts that a cycle would decide if these jobs had shrunk to their minimum."""
        decided = self.decisions
        with self._snapshot.trial() as trial:
            for item in items:
                trial.resize(item.job, item.at_its_least())
            cycle = Cycle(JobDecisions(self._snapshot, trial, self._now, continued=decided))
            blocked = cycle.start_in_order()
            cycle.plan_more(blocked)
            cycle.backfill(blocked)
            return Wanted(
                starts=cycle.decisions.starts[len(decided.starts) :],
                promised=[
                    (planned.job, planned.allocation)
                    for _, planned in cycle.decisions.planned
                    if planned.job.id not in self._promised
                ],
            )

    @contextmanager
    def _without_planned_starts(self) -> Iterator[None]:
        """Releases the resources held for planned starts within the block: they are planned again there. Promises after
        a preemption stay.
        """
        trial = self.decisions.trial
        lifted = [planned for _, planned in self.decisions.planned if planned.job.id not in self._promised]
        for planned in lifted:
            trial.lift(planned.job.id)
        yield
        for planned in lifted:
            trial.hold(planned.job.id, planned.held)

    # ---------------------------------------------------------------- one line

    def _continues_after(self, walk: Walk, job: Job) -> bool:
        """Starts a job in order; returns whether the walk through its line continues behind it."""
        decisions = self.decisions
        if job.id not in self._promised:
            if self._is_passed_over(walk, job) or decisions.start(walk.queue, job):
                return True
            if not decisions.preempt_for(walk.queue, job):
                if self._snapshot.backfill.protected <= 1:
                    # Jobs of the same shape find no room either. With more planned starts, the next may get one too.
                    walk.cursor.skip_like(job, self._too_long_to_pass(walk))
                if not decisions.could_ever_fit(walk.queue, job):
                    return True
                self._plan_start(walk, job)
                return False
        # Running jobs are leaving for it already. In strict lines no job passes it all the same.
        return walk.queue.blocking is Blocking.BACKFILL

    def _plan_start(self, walk: Walk, job: Job) -> None:
        self.decisions.plan_start(walk.key, walk.queue, job)
        walk.planned_starts += 1
        walk.planned_users.add(job.user)

    def _turn(self, walk: Walk) -> tuple[bool, float, float, int]:
        head = walk.cursor.peek()
        assert head is not None
        is_not_entitled, since, serial = turn_of(self._snapshot, walk.queue, head, self._now)
        if not self.decisions.is_ranked(walk.queue):
            return (is_not_entitled, since, 0.0, serial)
        # All lines of such a queue have one turn and one order: else a gang would start on GPUs that a single-node job
        # preempts it from at once.
        since = self._turns.setdefault(walk.queue.name, since)
        return (is_not_entitled, since, self._place(walk), serial)

    def _place(self, walk: Walk) -> float:
        """The place of the line's next job in the order of its queue, if that order preempts; infinite otherwise."""
        head = walk.cursor.peek()
        if head is None:
            return math.inf
        place = self._places.get(head.id)
        if place is None:
            rank = self.decisions.preempting.rank_of(head)
            place = self._places[head.id] = math.inf if rank is None else rank.place
        return place

    def _ordered_together(self, walks: Sequence[Walk]) -> list[list[Walk]]:
        """Lines of one queue whose order preempts are walked as one line, all others one after the other."""
        groups: dict[str | LineKey, list[Walk]] = {}
        for walk in walks:
            groups.setdefault(walk.key.queue if self.decisions.is_ranked(walk.queue) else walk.key, []).append(walk)
        return list(groups.values())

    def _is_passed_over(self, walk: Walk, job: Job) -> bool:
        return job.id in self._starting or job.id in self._promised or self._is_held_back(walk, job)

    def _has_room(self, walk: Walk) -> bool:
        """Whether any GPU of the pool is free, or held for a planned start and could be used until then. In a full pool
        the thousands of jobs behind need not be considered."""
        return self._has_free(walk) or any(planned.held.gpus for _, planned in self.decisions.planned)

    def _has_free(self, walk: Walk) -> bool:
        if walk.key.model in ("cpu", CHECKS):
            return True
        return any(index.free_gpus or index.partial for index in self._fleet.domains_of(walk.queue.pool, ()))

    def _walk(self, key: LineKey) -> Walk:
        snapshot, now, queue = self._snapshot, self._now, self._snapshot.queues[key.queue]
        cursor = snapshot.lines[key].cursor(
            lambda user: snapshot.score(user, key.model, now), self._reserved.kind_of(queue.pool)
        )
        return Walk(key=key, queue=queue, cursor=cursor)

    def _is_held_back(self, walk: Walk, job: Job) -> bool:
        """Whether a limit, a quota or a back-off holds the job, or the claim of another job on a shared limit.

        Such a job does not block the jobs behind it, unless it has a claim itself.
        """
        if job.not_before > self._now:
            self._wake_at = min(self._wake_at or job.not_before, job.not_before)
            return True
        if first_reason(self._snapshot, job, self._now) is not None:
            self._claim(walk, job)
        elif all(claim.can_be_passed(end_if_started(job, self._now)) for claim in self._claims if claim.concerns(job)):
            return False
        walk.cursor.skip_own_like(job)
        return True

    def _claim(self, walk: Walk, job: Job) -> None:
        """Give the job a claim on the shared limits and mounts that hold it, if only such rules hold it."""
        reasons = all_reasons(self._snapshot, job, self._now)
        if any(reason.rule not in CLAIMED_RULES for reason in reasons):
            return
        free = [reason for reason in reasons if not any(claim.is_for(job, reason) for claim in self._claims)]
        if free and may_have_claims(free) and self.decisions.could_ever_fit(walk.queue, job):
            starting = [self._snapshot.jobs[start.job_id] for start in self.decisions.starts]
            started = sorted(((end_if_started(job, self._now), job) for job in starting), key=lambda item: item[0])
            claims = (claim_of(self._snapshot, job, reason, self._now, started) for reason in free)
            self._claims += [claim for claim in claims if claim.blocks_others]

    def _too_long_to_pass(self, walk: Walk) -> float:
        """The run time from which on no job can use held resources: it would run beyond the last planned start and into
        the last reserved window.

        Where only held resources are free, jobs of the same shape that run at least so long are skipped, whatever
        their user.
        """
        last = max((planned.guaranteed_at for _, planned in self.decisions.planned), default=-math.inf)
        last = max(last, self._reserved.last_opening(walk.queue.pool))
        return last - self._now + _ROUNDING_SECONDS


def _models_of(key: LineKey) -> tuple[str, ...]:
    return () if key.model == "any" else tuple(key.model.split("|"))
