"""Preemption: for whom running jobs are interrupted, which of them may be, and by which rule.

Each rule names candidates for a job without room; those of them who lose the least work are chosen (`victims`). A
candidate is preemptible, has run for its least time, does not leave already, and stands strictly after the job that
asks: by an order that the two can never turn round, so that nobody who was preempted preempts back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from corral.core import guaranteeing
from corral.core.model import WHOLE, Job, JobState, Queue
from corral.core.ordering import POLICIES
from corral.core.ordering.cost import Rank, falls_behind_at
from corral.core.plan import Preemption, PreemptionRule
from corral.core.resources import gpus_text
from corral.core.snapshot import ClusterSnapshot
from corral.core.victims import Candidate, choose_victims

#: Before everybody who is not pinned.
_PINNED = Rank(-math.inf)


class Preempting:
    """What one cycle knows of running jobs that may be preempted; worked out when it is first asked for."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self.snapshot = snapshot
        self.now = now
        #: jobs that give way already, or were chosen to in this cycle
        self.leaving: dict[str, Job] = {
            job_id: snapshot.jobs[job_id] for ids in snapshot.giving_way.values() for job_id in sorted(ids)
        }
        #: when somebody who is spared now may be preempted
        self.wake_at: float | None = None
        self._behind: dict[str, list[tuple[float, Job]]] = {}

    @property
    def is_possible(self) -> bool:
        """Whether anybody could be preempted for anybody: to an installation without such rules they cost nothing."""
        snapshot = self.snapshot
        return snapshot.preemption.enabled and any(rule.counts(snapshot) for rule in SOURCES)

    def candidates(self, job: Job) -> list[Candidate]:
        """Who may be preempted for a job, each by the first rule that names it."""
        if not job.request.wants_gpu or job.queue not in self.snapshot.queues:
            return []
        found: dict[str, Candidate] = {}
        for source in SOURCES:
            if source.counts(self.snapshot):
                for candidate in source.candidates(self, job):
                    found.setdefault(candidate.job.id, candidate)
        return list(found.values())

    def victims(self, job: Job) -> list[Candidate] | None:
        """Whose end makes room for the job, if it is anybody's. Those who give way already must be out of the fleet."""
        candidates = self.candidates(job)
        if not candidates:
            return None
        return choose_victims(self.snapshot.fleet, job, self.snapshot.queues[job.queue].pool, candidates)

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

    def could_help(self, job: Job) -> bool:
        """Whether others might be preempted for the job, or for one behind it in its line: one look at each rule."""
        return any(source.counts(self.snapshot) and source.could_help(self, job) for source in SOURCES)

    def may_be_preempted(self, victim: Job, for_job: Job) -> bool:
        """Whether it may be interrupted at all, for a job that could use what it holds; if time alone will tell, that
        is noted."""
        if not victim.preemptible or victim.id in self.leaving or victim.allocation is None:
            return False
        if not victim.allocation.model or not _fits_model(for_job, victim):
            return False
        if victim.state not in (JobState.STARTING, JobState.RUNNING):
            return False
        since = victim.allocated_at or 0.0
        ripe_at = since + self.snapshot.preemption.min_run_seconds
        if ripe_at > self.now:
            self._wake(ripe_at)
            return False
        return victim.state is JobState.RUNNING

    def candidate(self, victim: Job, rule: PreemptionRule, words: Callable[[], str]) -> Candidate:
        return Candidate(job=victim, rule=rule, lost_gpu_seconds=lost_gpu_seconds(victim, self.now), words=words)

    def behind(self, queue: Queue) -> list[tuple[float, Job]]:
        """Running jobs of a queue whose order preempts: who stands before this point may preempt them. The last comes
        first, so that one look tells whether there is anybody."""
        found = self._behind.get(queue.name)
        if found is None:
            found = self._behind[queue.name] = sorted(self._ranked(queue), key=lambda item: (-item[0], item[1].serial))
        return found

    def _ranked(self, queue: Queue) -> Iterator[tuple[float, Job]]:
        snapshot = self.snapshot
        for job_id in snapshot.holding.get(queue.name, ()):
            job = snapshot.jobs[job_id]
            if not job.preemptible or job.state not in (JobState.STARTING, JobState.RUNNING):
                continue
            rank = rank_of(snapshot, queue, job, self.now)
            assert rank is not None
            yield rank.place - (snapshot.preemption.margin * rank.cost if rank.cost else 0.0), job
            falls_at = falls_behind_at(job, snapshot.ordering, self.now)
            if falls_at is not None and queue.policy != "priority":
                self._wake(falls_at)

    def _wake(self, at: float) -> None:
        if at > self.now:
            self.wake_at = at if self.wake_at is None else min(self.wake_at, at)


def claimants(snapshot: ClusterSnapshot) -> list[Job]:
    """Waiting jobs that others give way to or have given way to since they wait, in the order of their waiting."""
    found = []
    for job_id in {*snapshot.giving_way, *snapshot.gave_way}:
        job = snapshot.jobs.get(job_id)
        if job is None or job.state is not JobState.QUEUED or job.after or job.queue not in snapshot.queues:
            continue
        # Those who gave way to an earlier attempt of it owe it nothing any more.
        since = job.queued_at or 0.0
        gone = (snapshot.jobs[other].queued_at or 0.0 for other in snapshot.gave_way.get(job_id, ()))
        if job_id in snapshot.giving_way or any(at >= since for at in gone):
            found.append(job)
    return sorted(found, key=lambda job: (job.queued_at or 0.0, job.serial))


def lost_gpu_seconds(job: Job, now: float) -> float:
    """Work since its last checkpoint: lost, unless it saves when it is warned."""
    if job.started_at is None or job.allocation is None:
        return 0.0
    since = job.started_at if job.checkpointed_at is None else max(job.started_at, job.checkpointed_at)
    return max(0.0, now - since) * job.allocation.total_gpu_milli / WHOLE


def rank_of(snapshot: ClusterSnapshot, queue: Queue, job: Job, now: float) -> Rank | None:
    """Where a job stands in a queue whose order preempts; nothing in others. An operator's pin stands above it all."""
    rank = POLICIES[queue.policy].rank
    if not queue.preempts or rank is None:
        return None
    return _PINNED if job.pinned_at is not None else rank(job, snapshot.ordering, now)


# ---------------------------------------------------------------- the rules


class ByGuarantee:
    """What was borrowed comes back to the queue that it is guaranteed to."""

    @staticmethod
    def counts(snapshot: ClusterSnapshot) -> bool:
        return guaranteeing.counts(snapshot)

    @staticmethod
    def could_help(view: Preempting, job: Job) -> bool:
        queue = view.snapshot.queues[job.queue]
        return guaranteeing.standing(view.snapshot, queue).owed_milli > 0

    @staticmethod
    def candidates(view: Preempting, job: Job) -> Iterator[Candidate]:
        snapshot = view.snapshot
        if not guaranteeing.is_entitled(snapshot, job):
            return
        own = snapshot.queues[job.queue]
        for name in sorted(snapshot.holding):
            other = snapshot.queues.get(name)
            if other is None or name == own.name or other.pool != own.pool:
                continue
            for victim in guaranteeing.borrowers(snapshot, other, view.leaving):
                if view.may_be_preempted(victim, job):
                    words = _words_of_guarantee(snapshot, own, other, job)
                    yield view.candidate(victim, PreemptionRule.GUARANTEE, words)


class ByOrder:
    """In a queue whose order preempts, whoever stands before takes from whoever runs far behind."""

    @staticmethod
    def counts(snapshot: ClusterSnapshot) -> bool:
        return any(queue.preempts for queue in snapshot.queues.values())

    @staticmethod
    def could_help(view: Preempting, job: Job) -> bool:
        queue = view.snapshot.queues[job.queue]
        rank = rank_of(view.snapshot, queue, job, view.now)
        if rank is None:
            return False
        behind = view.behind(queue)
        return bool(behind) and behind[0][0] > rank.place

    @staticmethod
    def candidates(view: Preempting, job: Job) -> Iterator[Candidate]:
        queue = view.snapshot.queues[job.queue]
        rank = rank_of(view.snapshot, queue, job, view.now)
        if rank is None:
            return
        for point, victim in view.behind(queue):
            if point <= rank.place:
                break
            if view.may_be_preempted(victim, job):
                yield view.candidate(victim, PreemptionRule.ORDER, _words_of_order(view, queue, job, victim))


#: In the order in which they are asked. Further rules are added here.
SOURCES = (ByGuarantee, ByOrder)


def _words_of_guarantee(snapshot: ClusterSnapshot, own: Queue, other: Queue, job: Job) -> Callable[[], str]:
    held = gpus_text(snapshot.held.by_queue.get(own.name, 0))
    borrows = gpus_text(snapshot.held.by_queue.get(other.name, 0))
    return lambda: (
        f"queue {own.name} has {own.guaranteed_gpus} GPUs guaranteed and holds {held}; {job.id} asks for "
        f"{gpus_text(job.request.total_gpu_milli)} of them, and queue {other.name}, which has {other.guaranteed_gpus} "
        f"guaranteed, holds {borrows}"
    )


def _words_of_order(view: Preempting, queue: Queue, job: Job, victim: Job) -> Callable[[], str]:
    def words() -> str:
        if job.pinned_at is not None:
            return f"{job.id} is pinned by an operator, and the order of queue {queue.name} preempts"
        told = POLICIES[queue.policy].rank_words
        rules, now = view.snapshot.ordering, view.now
        return (
            f"in queue {queue.name}, whose order preempts, {job.id} ({told(job, rules, now)}) goes before "
            f"{victim.id} ({told(victim, rules, now)})"
        )

    return words


def _fits_model(job: Job, victim: Job) -> bool:
    assert victim.allocation is not None
    return not job.request.models or victim.allocation.model in job.request.models
