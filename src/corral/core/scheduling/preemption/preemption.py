"""Preemption: for which waiting jobs running jobs are interrupted, which running jobs are candidates, and by which
rule.

A waiting job that finds no room may preempt running jobs by one of four rules (`rules`): its queue is guaranteed GPUs
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

from corral.core.model import WHOLE, Allocation, Job, JobState
from corral.core.scheduling.backfill.planned_allocation import PlannedAllocation
from corral.core.scheduling.limits import guarantees
from corral.core.scheduling.ordering.cost import Rank
from corral.core.scheduling.plan.plan import Preemption, PreemptionRule
from corral.core.scheduling.preemption.reclaim import own_part
from corral.core.scheduling.preemption.rules import SOURCES, rank_of, request_text
from corral.core.scheduling.preemption.victims import Candidate, choose_victims
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.running_order import RankingAt

#: The least loss is searched among so many candidates, those that stand furthest behind; among more only if these do
#: not make enough room.
_FIRST_LOOK = 512


#: A running job, the rule that names it, and a function that describes the rule with its numbers.
Named = tuple[Job, PreemptionRule, Callable[[], str]]


class Answer:
    """The jobs that rules name, read as far as they are asked for, and only once."""

    def __init__(self, coming: Iterator[Named]) -> None:
        self._coming = coming
        self._read: list[Named] = []

    def __iter__(self) -> Iterator[Named]:
        yield from self._read
        for preemption in self._coming:
            self._read.append(preemption)
            yield preemption


class PreemptionView:
    """The running jobs that may be preempted in one cycle; computed at the first use."""

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
        self._sources = [source for source in SOURCES if source.counts(snapshot)] if snapshot.preemption.enabled else []
        self._rankings: dict[tuple[str, bool], RankingAt] = {}
        #: a cache: the ranks of waiting jobs do not change within a cycle
        self._ranks: dict[str, Rank | None] = {}
        #: a cache: the last job that `_after` was asked about, how many jobs were chosen by then, and its answer
        self._answered: tuple[Job, int, Answer] | None = None

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
                f"{for_job.id} asks for {request_text(for_job)}, and there is room for it, but not in one place: "
                f"{job.id} moves from {here} to {there}"
            ),
            to=to,
        )

    def sooner(self, job: Job) -> dict[str, float]:
        """The latest end of running jobs that are being preempted, or could be preempted for this job, by job id."""
        found = {leaving.id: self.now + leaving.grace_seconds for leaving in self.leaving.values()}
        for victim, rule, _ in self._after(job):
            if self._frees(job, victim, rule) is not None:
                continue
            end = max(self.now, self._ripe_at(victim)) + victim.grace_seconds
            if end < victim.likely_end_after(self.now):
                found[victim.id] = end
        return found

    def can_reclaim(self, job: Job, planned: PlannedAllocation) -> bool:
        """Whether a job that starts now on resources held for a planned start can be preempted in time for that
        start."""
        if not job.preemptible or not job.request.wants_gpu:
            return False
        if math.isfinite(planned.at) and self.now + self.snapshot.preemption.min_run_seconds > planned.at:
            return False
        return any(source.can_reclaim(self, job, planned) for source in self._sources)

    def ranking(self, job: Job) -> RankingAt:
        """The preemptible running jobs of the job's queue, whose order preempts, by their rank.

        A gang needs no margin: it takes several nodes at one moment, and jobs that are ahead of it by less than a
        margin would pass it for as long as they come.
        """
        key = (job.queue, job.request.is_gang)
        found = self._rankings.get(key)
        if found is None:
            margin = None if job.request.is_gang else self.snapshot.preemption.margin
            ranking = self.snapshot.ranking(self.snapshot.queues[job.queue])
            found = self._rankings[key] = ranking.at(self.now, margin)
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

    def rank_of(self, job: Job) -> Rank | None:
        """The rank of a waiting job in a queue whose order preempts; None in others."""
        try:
            return self._ranks[job.id]
        except KeyError:
            rank = self._ranks[job.id] = rank_of(self.snapshot, self.snapshot.queues[job.queue], job, self.now)
            return rank

    def _candidates(self, job: Job) -> Iterator[Candidate]:
        for victim, rule, detail in self._after(job):
            if self._is_ripe(victim):
                lost, frees = lost_gpu_seconds(victim, self.now), self._frees(job, victim, rule)
                yield Candidate(job=victim, rule=rule, lost_gpu_seconds=lost, frees=frees, detail=detail)

    def _after(self, job: Job) -> Iterator[Named]:
        """Running jobs that stand after a job and hold GPUs that it could use, each with the first rule that names it.
        They are asked for twice for a job that gets no room: as victims, and for its planned start."""
        chosen = len(self.leaving) + len(self.moving) + len(self.moving_later)
        known = self._answered
        if known is None or known[0] is not job or known[1] != chosen:
            known = self._answered = (job, chosen, Answer(self._find_after(job)))
        return iter(known[2])

    def _find_after(self, job: Job) -> Iterator[Named]:
        if not job.request.wants_gpu or job.queue not in self.snapshot.queues:
            return
        models, seen = job.request.models, {*self.leaving, *self.moving, *self.moving_later}
        for source in self._sources:
            for victim, detail in source.after(self, job):
                if (
                    victim.id in seen
                    or not victim.preemptible
                    or victim.allocation is None
                    or not victim.allocation.model
                ):
                    continue
                if victim.state not in (JobState.STARTING, JobState.RUNNING) or self.reserved.shields(victim, job):
                    continue
                if not models or victim.allocation.model in models:
                    seen.add(victim.id)
                    yield victim, source.rule, detail

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
        if job_id in snapshot.victims_stopping or snapshot.last_requeued_at(job_id) >= since:
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
