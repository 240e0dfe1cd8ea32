"""One scheduling cycle: from a picture of the cluster and the time to a plan. Nothing else goes in, nothing is changed.

The order between lines is that of how long their first job has been waiting; within a line it is the queue's policy.
"""

from __future__ import annotations

import heapq
from bisect import insort
from dataclasses import dataclass

from corral.core.claims import SHARED, Claim, can_be_kept, claim_of
from corral.core.lines import LineCursor, LineKey
from corral.core.model import Allocation, Blocking, Job, Queue
from corral.core.placing import could_ever_fit, find_place
from corral.core.plan import Plan, PlannedStart, Start
from corral.core.reserving import Reservation, Return, end_if_started, reserve, still_held
from corral.core.rules import all_reasons, first_reason
from corral.core.snapshot import ClusterSnapshot, Trial


def schedule(snapshot: ClusterSnapshot, now: float) -> Plan:
    """Decide what starts now, where, and what is promised to the first job that waits in each line."""
    with snapshot.trial() as trial:
        cycle = _Cycle(snapshot, trial, now)
        # 1. In order, until the first job of each line that finds no room. It gets a protected start.
        blocked = cycle.start_in_order()
        # 2. Behind it, whatever does not delay a protected start; in strict lines nothing.
        cycle.backfill([line for line in blocked if line.queue.blocking is Blocking.BACKFILL])
        return cycle.plan()


@dataclass(slots=True)
class _Walk:
    """How far a cycle has come in one line."""

    key: LineKey
    queue: Queue
    cursor: LineCursor


class _Cycle:
    def __init__(self, snapshot: ClusterSnapshot, trial: Trial, now: float) -> None:
        self._snapshot = snapshot
        self._fleet = snapshot.fleet
        self._trial = trial
        self._now = now
        self._starts: list[Start] = []
        #: ends of this cycle's starts, soonest first
        self._returns: list[Return] = []
        self._reservations: list[tuple[LineKey, Reservation]] = []
        self._claims: list[Claim] = []
        self._wake_at: float | None = None

    def start_in_order(self) -> list[_Walk]:
        """Start jobs in order; the lines that came to a job without room, which now has its reservation."""
        walks = [self._walk(key) for key in sorted(self._snapshot.lines) if key.queue in self._snapshot.queues]
        waiting = [(_waiting_since(head), number) for number, walk in enumerate(walks) if (head := walk.cursor.peek())]
        heapq.heapify(waiting)
        blocked = []
        while waiting:
            walk = walks[waiting[0][1]]
            job = walk.cursor.pop()
            assert job is not None
            if not self._is_held_back(walk, job) and not self._start(walk, job):
                walk.cursor.skip_like(job)
                if could_ever_fit(self._fleet, job, walk.queue.pool):
                    self._reserve(walk, job)
                    blocked.append(walk)
                    heapq.heappop(waiting)
                    continue
            head = walk.cursor.peek()
            if head is None:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (_waiting_since(head), waiting[0][1]))
        return blocked

    def backfill(self, walks: list[_Walk]) -> None:
        for walk in walks:
            if not self._has_room(walk):
                continue
            for job in walk.cursor:
                if not self._is_held_back(walk, job) and not self._start(walk, job):
                    # Room only shrinks within a cycle: no other job of this shape will find a place either.
                    walk.cursor.skip_like(job)

    def plan(self) -> Plan:
        return Plan(
            at=self._now,
            starts=tuple(self._starts),
            planned=tuple(
                PlannedStart(
                    job_id=reservation.job.id,
                    line=line,
                    at=reservation.at,
                    nodes=tuple(grant.node for grant in reservation.allocation.grants),
                    held=reservation.held,
                )
                for line, reservation in self._reservations
            ),
            claims=tuple(self._claims),
            wake_at=self._wake_at,
        )

    def _has_room(self, walk: _Walk) -> bool:
        """Whether anything at all is free or could be lent in the pool:

        A full pool needs no look at thousands of jobs.
        """
        if walk.key.model == "cpu":
            return True
        indexes = self._fleet.domains_of(walk.queue.pool, ())
        return any(index.free_gpus or index.partial for index in indexes) or any(
            reservation.held.gpus for _, reservation in self._reservations
        )

    def _walk(self, key: LineKey) -> _Walk:
        snapshot, now = self._snapshot, self._now
        cursor = snapshot.lines[key].cursor(lambda user: snapshot.score(user, key.model, now))
        return _Walk(key=key, queue=snapshot.queues[key.queue], cursor=cursor)

    def _is_held_back(self, walk: _Walk, job: Job) -> bool:
        """Whether a limit, a quota or a back-off holds the job, or another's claim on a limit that both share.

        Such a job blocks nobody behind it, unless it has a claim itself.
        """
        if job.not_before > self._now:
            self._wake_at = min(self._wake_at or job.not_before, job.not_before)
            return True
        if first_reason(self._snapshot, job, self._now) is not None:
            self._claim(walk, job)
        elif all(claim.lets_pass(end_if_started(job, self._now)) for claim in self._claims if claim.concerns(job)):
            return False
        walk.cursor.skip_own_like(job)
        return True

    def _claim(self, walk: _Walk, job: Job) -> None:
        """Give the job its turn under the shared limits that hold it, if nothing of its own holds it too."""
        reasons = all_reasons(self._snapshot, job, self._now)
        if any(reason.rule not in SHARED for reason in reasons):
            return
        free = [reason for reason in reasons if not any(claim.is_for(job, reason) for claim in self._claims)]
        if free and can_be_kept(free) and could_ever_fit(self._fleet, job, walk.queue.pool):
            starting = [self._snapshot.jobs[start.job_id] for start in self._starts]
            started = sorted(((end_if_started(one, self._now), one) for one in starting), key=lambda item: item[0])
            self._claims += [claim_of(self._snapshot, job, reason, self._now, started) for reason in free]

    def _start(self, walk: _Walk, job: Job) -> bool:
        allocation = find_place(self._fleet, job, walk.queue.pool, walk.queue.placement)
        if allocation is not None:
            self._trial.start(job, allocation)
        else:
            allocation = self._start_before_others(walk, job)
        if allocation is None:
            return False
        self._starts.append(Start(job_id=job.id, allocation=allocation))
        insort(self._returns, (end_if_started(job, self._now), job.serial, allocation), key=lambda item: item[:2])
        return True

    def _start_before_others(self, walk: _Walk, job: Job) -> Allocation | None:
        """Start the job on what is held for others, if it is gone before they need it."""
        end = end_if_started(job, self._now)
        lifted = [n for n, (_, held) in enumerate(self._reservations) if end <= held.at and end < float("inf")]
        if not lifted:
            return None
        for number in lifted:
            self._trial.lift(self._reservations[number][1].job.id)
        allocation = find_place(self._fleet, job, walk.queue.pool, walk.queue.placement)
        if allocation is not None:
            self._trial.start(job, allocation)
        for number in lifted:
            line, reservation = self._reservations[number]
            if allocation is not None:
                reservation = still_held(self._fleet, reservation)
                self._reservations[number] = (line, reservation)
            self._trial.hold(reservation.job.id, reservation.held)
        return allocation

    def _reserve(self, walk: _Walk, job: Job) -> None:
        reservation = reserve(
            self._snapshot,
            job,
            walk.queue.pool,
            self._now,
            started=self._returns,
            reservations=[reservation for _, reservation in self._reservations],
        )
        if reservation is not None:
            self._trial.hold(job.id, reservation.held)
            self._reservations.append((walk.key, reservation))


def _waiting_since(job: Job) -> tuple[float, int]:
    return (job.created_at if job.queued_at is None else job.queued_at, job.serial)
