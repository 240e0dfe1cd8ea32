"""Preemption: for whom running jobs are interrupted, which of them may be, and by which rule.

Each rule names those who stand strictly after a job without room: by an order that two jobs can never turn round, so
that nobody who was preempted preempts back. Of them those may be preempted who are preemptible, have run for their
least time and do not leave already, and those are who lose the least work (`victims`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol

from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Allocation, Job, JobState, Queue
from corral.core.quantities import format_duration
from corral.core.scheduling.backfill.planned_start import ProtectedStart, is_limited, likely_end_if_started
from corral.core.scheduling.limits import guarantees
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import Rank, aged_from
from corral.core.scheduling.plan.plan import Preemption, PreemptionRule
from corral.core.scheduling.preemption.reclaim import ByReservation, own_part
from corral.core.scheduling.preemption.victims import Candidate, choose_victims
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.running_order import RankingAt, rank_in

#: The least loss is looked for among so many, of those who stand furthest behind; among more only if they do not do.
_FIRST_LOOK = 512

#: A job, and the rule with its numbers in words.
After = tuple[Job, Callable[[], str]]


class Source(Protocol):
    """A rule by which jobs are preempted."""

    rule: PreemptionRule

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        """Whether it can decide anything in this installation; if not, it must cost nothing."""

    def could_help(self, view: Preempting, job: Job) -> bool:
        """Whether it might name anybody for the job, or for one behind it in its line. Must be quick."""

    def after(self, view: Preempting, job: Job) -> Iterator[After]:
        """Jobs that hold resources and stand strictly after the job, whether they may be preempted yet or not."""

    def gives_back(self, view: Preempting, job: Job, protected: ProtectedStart) -> bool:
        """Whether a job that would start now on what is held for a protected start could be preempted for it then."""


class Preempting:
    """What one cycle knows of running jobs that may be preempted; worked out when it is first asked for."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self.snapshot = snapshot
        self.now = now
        giving = [snapshot.jobs[job_id] for ids in snapshot.victims_stopping.values() for job_id in sorted(ids)]
        #: jobs that give way already, or were chosen to in this cycle: to the queue, and elsewhere
        self.leaving: dict[str, Job] = {job.id: job for job in giving if not job.is_moving}
        self.moving: dict[str, Job] = {job.id: job for job in giving if job.is_moving}
        #: jobs that will be moved as soon as others have left the places where they go on: what they hold is promised
        self.moving_later: set[str] = set()
        #: when somebody who is spared now may be preempted
        self.wake_at: float | None = None
        self.reserved = Reserved(snapshot, now)
        #: to an installation without such rules they cost nothing
        self._sources = [one for one in SOURCES if one.counts(snapshot)] if snapshot.preemption.enabled else []
        self._rankings: dict[str, RankingAt] = {}

    @property
    def is_possible(self) -> bool:
        """Whether anybody could be preempted for anybody."""
        return bool(self._sources)

    @property
    def giving_way(self) -> list[Job]:
        """Those who leave for others: to the queue, or elsewhere."""
        return [*self.leaving.values(), *self.moving.values()]

    def could_help(self, job: Job) -> bool:
        """Whether others might be preempted for the job, or for one behind it in its line."""
        return any(source.could_help(self, job) for source in self._sources)

    def victims(self, job: Job) -> list[Candidate] | None:
        """Whose end makes room for the job, if it is anybody's. Those who give way already must be out of the fleet."""
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
        """Those who may be preempted for the job and stand furthest behind, as many as are looked at first."""
        return [*islice(self._candidates(job), _FIRST_LOOK)]

    def may_be_moved(self, job: Job) -> bool:
        """Whether it has run for its least time since it was last started or moved, and does not leave already."""
        return not self._is_chosen(job.id) and self._is_ripe(job)

    def leave(self, victims: Iterable[Candidate], for_job: Job) -> list[Preemption]:
        """From now on in this cycle these give way."""
        victims = list(victims)
        self.leaving |= {victim.job.id: victim.job for victim in victims}
        return [
            Preemption(
                job_id=victim.job.id,
                for_job=for_job.id,
                rule=victim.rule,
                lost_gpu_seconds=victim.lost_gpu_seconds,
                detail=victim.words(),
            )
            for victim in victims
        ]

    def move(self, job: Job, to: Allocation, for_job: Job) -> Preemption:
        """From now on in this cycle the job is on its way to another place."""
        self.moving[job.id] = job
        assert job.allocation is not None
        here, there = job.allocation.grants[0].node, to.grants[0].node
        return Preemption(
            job_id=job.id,
            for_job=for_job.id,
            rule=PreemptionRule.MOVE,
            lost_gpu_seconds=lost_gpu_seconds(job, self.now),
            detail=(
                f"{for_job.id} asks for {_asked_words(for_job)}, and there is room for it, but not in one place: "
                f"{job.id} goes on on {there} instead of {here}"
            ),
            to=to,
        )

    def sooner(self, job: Job) -> dict[str, float]:
        """When running jobs are gone at the latest that leave, or could be made to for this job."""
        found = {one.id: self.now + one.grace_seconds for one in self.leaving.values()}
        for one, rule, _ in self._after(job):
            if self._frees(job, one, rule) is not None:
                continue
            end = max(self.now, self._ripe_at(one)) + one.grace_seconds
            if end < one.likely_end_after(self.now):
                found[one.id] = end
        return found

    def gives_back(self, job: Job, protected: ProtectedStart) -> bool:
        """Whether a job that would start now on what is held for a protected start could be made to go in time."""
        if not job.preemptible or not job.request.wants_gpu:
            return False
        if math.isfinite(protected.at) and self.now + self.snapshot.preemption.min_run_seconds > protected.at:
            return False
        return any(source.gives_back(self, job, protected) for source in self._sources)

    def ranking(self, queue: Queue) -> RankingAt:
        """Preemptible jobs that a queue whose order preempts has running, by their rank."""
        found = self._rankings.get(queue.name)
        if found is None:
            ranking = self.snapshot.ranking(queue)
            found = self._rankings[queue.name] = ranking.at(self.now, self.snapshot.preemption.margin)
            falls_at = found.next_fall()
            if falls_at is not None:
                self.wake(falls_at)
        return found

    def wake(self, at: float) -> None:
        """Time alone will change the answer then."""
        if at > self.now:
            self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    def _candidates(self, job: Job) -> Iterator[Candidate]:
        for one, rule, words in self._after(job):
            if self._is_ripe(one):
                lost, frees = lost_gpu_seconds(one, self.now), self._frees(job, one, rule)
                yield Candidate(job=one, rule=rule, lost_gpu_seconds=lost, frees=frees, words=words)

    def _after(self, job: Job) -> Iterator[tuple[Job, PreemptionRule, Callable[[], str]]]:
        """Who stands after a job and holds what it could use, each by the first rule that says so."""
        if not job.request.wants_gpu or job.queue not in self.snapshot.queues:
            return
        models, seen = job.request.models, {*self.leaving, *self.moving, *self.moving_later}
        for source in self._sources:
            for one, words in source.after(self, job):
                if one.id in seen or not one.preemptible or one.allocation is None or not one.allocation.model:
                    continue
                if one.state not in (JobState.STARTING, JobState.RUNNING) or self.reserved.shields(one, job):
                    continue
                if not models or one.allocation.model in models:
                    seen.add(one.id)
                    yield one, source.rule, words

    def _frees(self, job: Job, victim: Job, rule: PreemptionRule) -> Allocation | None:
        """What of a victim's end counts for the job, if not all of it does."""
        return own_part(self, job, victim) if rule is PreemptionRule.RESERVATION else None

    def _is_chosen(self, job_id: str) -> bool:
        """Whether it leaves already, or was chosen to in this cycle: what it holds is given away once."""
        return job_id in self.leaving or job_id in self.moving or job_id in self.moving_later

    def _ripe_at(self, job: Job) -> float:
        return (job.allocated_at or 0.0) + self.snapshot.preemption.min_run_seconds

    def _is_ripe(self, job: Job) -> bool:
        self.wake(self._ripe_at(job))
        return job.state is JobState.RUNNING and self._ripe_at(job) <= self.now


def claimants(snapshot: ClusterSnapshot, now: float) -> list[Job]:
    """Waiting jobs that others give way to or have given way to since they wait.

    Those who ask for what is guaranteed to them come first, as they did when others were chosen to give way; then those
    to whom all have given way, so that they start on that; then by the order of their queue, where that preempts, and
    by how long they wait.
    """
    found: list[Job] = []
    for job_id in {*snapshot.victims_stopping, *snapshot.victims_requeued}:
        job = snapshot.jobs.get(job_id)
        if job is None or job.state is not JobState.QUEUED or job.after or job.queue not in snapshot.queues:
            continue
        # Those who gave way to an earlier attempt of it owe it nothing any more.
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
    """Whoever gave way to another that waits still comes behind it, although others gave way to it before: else at one
    moment the two would take turns for ever."""
    before = list[str]()
    for_job = job.preempted_for
    while for_job in claimants and for_job not in before:
        before.append(for_job)
        for_job = claimants[for_job].preempted_for
    return len(before)


def lost_gpu_seconds(job: Job, now: float) -> float:
    """Work since its last checkpoint: lost, unless it saves when it is warned."""
    if job.started_at is None or job.allocation is None:
        return 0.0
    since = job.started_at if job.checkpointed_at is None else max(job.started_at, job.checkpointed_at)
    return max(0.0, now - since) * job.allocation.total_gpu_milli / WHOLE


def _asked_words(job: Job) -> str:
    request = job.request
    each = f"{request.gpus} {'GPU' if request.gpus == 1 else 'GPUs'}"
    return f"{each} of one node" if request.nodes == 1 else f"{each} of each of {request.nodes} nodes"


def rank_of(snapshot: ClusterSnapshot, queue: Queue, job: Job, now: float) -> Rank | None:
    """Where a job stands in a queue whose order preempts; nothing in others."""
    return rank_in(queue.policy, job, snapshot.ordering, now) if queue.preempts else None


# ---------------------------------------------------------------- the rules


class ByGuarantee:
    """What was borrowed comes back to the queue that it is guaranteed to."""

    rule = PreemptionRule.GUARANTEE

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return guarantees.counts(snapshot)

    def could_help(self, view: Preempting, job: Job) -> bool:
        return guarantees.standing(view.snapshot, view.snapshot.queues[job.queue]).owed_milli > 0

    def after(self, view: Preempting, job: Job) -> Iterator[After]:
        snapshot = view.snapshot
        if not guarantees.is_entitled(snapshot, job):
            return
        own = snapshot.queues[job.queue]
        for name in sorted(snapshot.holding):
            other = snapshot.queues.get(name)
            if other is not None and name != own.name and other.pool == own.pool:
                words = self._words(snapshot, own, other, job)
                yield from ((one, words) for one in guarantees.borrowers(snapshot, other, view.leaving))

    def gives_back(self, view: Preempting, job: Job, protected: ProtectedStart) -> bool:
        queues = view.snapshot.queues
        own, other = queues[job.queue], queues[protected.job.queue]
        if own.name == other.name or own.pool != other.pool or not guarantees.is_entitled(view.snapshot, protected.job):
            return False
        return not guarantees.is_entitled(view.snapshot, job)

    def _words(self, snapshot: ClusterSnapshot, own: Queue, other: Queue, job: Job) -> Callable[[], str]:
        held, borrows = (gpus_text(snapshot.held.by_queue.get(name, 0)) for name in (own.name, other.name))
        count = f"{own.guaranteed_gpus} {'GPU' if own.guaranteed_gpus == 1 else 'GPUs'}"
        return lambda: (
            f"queue {own.name} has {count} guaranteed and holds {held}; {job.id} asks for "
            f"{gpus_text(job.request.total_gpu_milli)} of them, and queue {other.name}, which has "
            f"{other.guaranteed_gpus} guaranteed, holds {borrows}"
        )


class ByOrder:
    """In a queue whose order preempts, whoever stands before takes from whoever runs and stands after."""

    rule = PreemptionRule.ORDER

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return any(queue.preempts for queue in snapshot.queues.values())

    def could_help(self, view: Preempting, job: Job) -> bool:
        queue = view.snapshot.queues[job.queue]
        rank = rank_of(view.snapshot, queue, job, view.now)
        if rank is None:
            return False
        return next(view.ranking(queue).behind(rank.place), None) is not None

    def after(self, view: Preempting, job: Job) -> Iterator[After]:
        queue = view.snapshot.queues[job.queue]
        rank = rank_of(view.snapshot, queue, job, view.now)
        if rank is not None:
            behind = view.ranking(queue).behind(rank.place)
            yield from ((one, self._words(view, queue, job, one)) for one in behind)

    def gives_back(self, view: Preempting, job: Job, protected: ProtectedStart) -> bool:
        """As they stand now: a job that gets more urgent while it runs keeps what it has."""
        if job.queue != protected.job.queue:
            return False
        queue = view.snapshot.queues[job.queue]
        own, others = (rank_of(view.snapshot, queue, one, view.now) for one in (job, protected.job))
        return own is not None and others is not None and others.place < own.place

    def _words(self, view: Preempting, queue: Queue, job: Job, victim: Job) -> Callable[[], str]:
        def words() -> str:
            if job.pinned_at is not None:
                return f"{job.id} is pinned by an operator, and the order of queue {queue.name} preempts"
            told, rules = POLICIES[queue.policy].rank_text, view.snapshot.ordering
            return (
                f"in queue {queue.name}, whose order preempts, {job.id} ({told(job, rules, view.now)}) goes before "
                f"{victim.id} ({told(victim, rules, view.now)})"
            )

        return words


class ByOverrun:
    """Whoever passed a waiting job on the strength of a prediction, and runs longer, makes room for it.

    Only the younger of two jobs passes so, and it is never the other way round. Where another rule could turn the two
    round again, in a queue whose order preempts or within a guarantee, nobody passes so.
    """

    rule = PreemptionRule.OVERRUN

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return True

    def could_help(self, view: Preempting, job: Job) -> bool:
        return False  # it is for those whose protected start has come, and they are looked at anyway

    def after(self, view: Preempting, job: Job) -> Iterator[After]:
        snapshot, since = view.snapshot, job.queued_at or 0.0
        pool = snapshot.queues[job.queue].pool
        next_end = snapshot.next_likely_end(view.now)
        if next_end is not None:
            view.wake(next_end)
        for one in snapshot.overrunning(view.now):
            queue = snapshot.queues.get(one.queue)
            passed = (one.allocated_at or 0.0) > since and self._is_behind(view, one, job)
            if passed and queue is not None and queue.pool == pool and self._has_borrowed(view, queue, one):
                yield one, self._words(view, job, one)

    def gives_back(self, view: Preempting, job: Job, protected: ProtectedStart) -> bool:
        if is_limited(job) or not math.isfinite(protected.at) or not self._is_behind(view, job, protected.job):
            return False
        is_in_time = likely_end_if_started(job, view.now) <= protected.at
        return is_in_time and not guarantees.is_entitled(view.snapshot, job)

    def _is_behind(self, view: Preempting, one: Job, job: Job) -> bool:
        queue = view.snapshot.queues[job.queue]
        if one.queue == job.queue and rank_of(view.snapshot, queue, job, view.now) is not None:
            return False
        return (aged_from(job), job.serial) < (aged_from(one), one.serial)

    def _has_borrowed(self, view: Preempting, queue: Queue, one: Job) -> bool:
        if not queue.guaranteed_gpus:
            return True
        return any(other.id == one.id for other in guarantees.borrowers(view.snapshot, queue, view.leaving))

    def _words(self, view: Preempting, job: Job, victim: Job) -> Callable[[], str]:
        assert victim.predicted is not None
        ran = format_duration(max(1.0, view.now - (victim.started_at or view.now)))
        expected = format_duration(max(1.0, victim.predicted.p90_seconds))
        return lambda: (
            f"{victim.id} passed {job.id}, which waited for longer, because runs like it take {expected}; "
            f"it has run for {ran}"
        )


#: In the order in which they are asked. A further rule is one more of these.
SOURCES: tuple[Source, ...] = (ByGuarantee(), ByReservation(), ByOrder(), ByOverrun())
