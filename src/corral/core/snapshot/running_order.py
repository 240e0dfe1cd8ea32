"""Running jobs of a queue whose order preempts, kept in order while jobs start and end.

While a job runs its rank only moves to the front, so that its rank at the start is a bound: jobs whose bound is small
enough need not be considered. Jobs without a prediction or a time limit are the exception, and are considered each
time.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from corral.core.model import Job, JobState
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import OrderingRules, Rank, falls_behind_at

#: Before all jobs that are not pinned.
PINNED = Rank(-math.inf)


def rank_in(policy: str, job: Job, rules: OrderingRules, now: float) -> Rank | None:
    """The rank of a job under a policy that has ranks; None under others. A pinned job is before all others."""
    rank = POLICIES[policy].rank
    if rank is None:
        return None
    return PINNED if job.pinned_at is not None else rank(job, rules, now)


class Ranking:
    """The jobs of one queue that may be preempted. A job enters with `add` and leaves with `remove`."""

    def __init__(self, policy: str, rules: OrderingRules, jobs: Iterable[Job]) -> None:
        self._policy = policy
        self._rules = rules
        self._jobs: dict[str, Job] = {}
        #: the place of each job at its start, the last place first
        self._bounds: list[tuple[float, int, str]] = []
        self._unsteady: dict[str, int] = {}
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        if not job.preemptible or job.state not in (JobState.STARTING, JobState.RUNNING) or job.pinned_at is not None:
            return
        self._jobs[job.id] = job
        if self._falls_behind_at(job, 0.0) is not None:
            self._unsteady[job.id] = job.serial
        else:
            insort(self._bounds, self._entry(job))

    def remove(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        if self._unsteady.pop(job_id, None) is None:
            del self._bounds[bisect_left(self._bounds, self._entry(job))]

    def at(self, now: float, margin: float) -> RankingAt:
        return RankingAt(self, now, margin)

    def unsteady(self) -> list[Job]:
        """Jobs whose rank may move back, in the order of their ids."""
        return [self._jobs[job_id] for job_id in sorted(self._unsteady, key=self._unsteady.__getitem__)]

    def steady(self) -> Iterator[tuple[float, Job]]:
        """Jobs whose rank never moves behind the returned place; the last place first."""
        return ((-bound, self._jobs[job_id]) for bound, _, job_id in self._bounds)

    def rank(self, job: Job, now: float) -> Rank:
        rank = rank_in(self._policy, job, self._rules, now)
        assert rank is not None
        return rank

    def falls_behind(self, job: Job, now: float) -> float | None:
        return self._falls_behind_at(job, now)

    def _falls_behind_at(self, job: Job, now: float) -> float | None:
        return falls_behind_at(job, self._rules, now) if POLICIES[self._policy].looks_at_run_times else None

    def _entry(self, job: Job) -> tuple[float, int, str]:
        return (-self.rank(job, job.started_at or 0.0).place, job.serial, job.id)


class RankingAt:
    """The ranking at one moment. Each rank is computed once, when it is first asked for."""

    def __init__(self, ranking: Ranking, now: float, margin: float) -> None:
        self._ranking = ranking
        self._now = now
        self._margin = margin
        self._points: dict[str, float] = {}
        self._unsteady: list[tuple[float, Job]] | None = None
        #: no job is behind this place, as far as is known
        self._none_behind = math.inf

    def behind(self, place: float) -> Iterator[Job]:
        """Jobs that a job at this place may preempt: it is ahead of them by the margin."""
        if place >= self._none_behind:
            return
        found = False
        for point, job in self._unsteady_points():
            if point <= place:
                break
            found = True
            yield job
        for bound, job in self._ranking.steady():
            if bound <= place:
                break
            if self._point(job) > place:
                found = True
                yield job
        if not found:
            self._none_behind = place

    def next_fall(self) -> float | None:
        """When the next job runs longer than assumed and moves back."""
        falls = (self._ranking.falls_behind(job, self._now) for job in self._ranking.unsteady())
        return min((at for at in falls if at is not None), default=None)

    def _unsteady_points(self) -> list[tuple[float, Job]]:
        if self._unsteady is None:
            points = [(self._point(job), job) for job in self._ranking.unsteady()]
            self._unsteady = sorted(points, key=lambda item: (-item[0], item[1].serial))
        return self._unsteady

    def _point(self, job: Job) -> float:
        point = self._points.get(job.id)
        if point is None:
            rank = self._ranking.rank(job, self._now)
            lead = max(self._margin * rank.cost, rank.least_lead) if rank.cost else 0.0
            point = self._points[job.id] = rank.place - lead
        return point
