"""Running jobs of a queue whose order preempts, kept in order while jobs start and end.

While a job runs its rank only moves to the front, so that its rank at the start is a bound: jobs whose bound is small
enough need not be considered. Jobs without a prediction or a time limit are the exception, and are considered each
time.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from corral.core.model import Job, JobState
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import OrderingRules, Rank, falls_behind_at, falls_of

#: Before all jobs that are not pinned.
PINNED = Rank(-math.inf)
#: How many falls of one attempt are looked through for one that matters; the last of them counts in any case.
_MOST_FALLS = 8
#: A fall counts from so much later: then it is over, whatever the rounding.
_ROUNDING_SECONDS = 1e-3


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
        #: a cache: by unsteady job
        self._stretches: dict[str, Stretch] = {}
        self._falls: dict[str, Falls] = {}
        #: a cache: what `unsteady` returns until a job enters or leaves
        self._unsteady_jobs: list[Job] | None = None
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        if not job.preemptible or job.state not in (JobState.STARTING, JobState.RUNNING) or job.pinned_at is not None:
            return
        self._jobs[job.id] = job
        if self._falls_behind_at(job, 0.0) is not None:
            self._unsteady[job.id] = job.serial
            self._unsteady_jobs = None
        else:
            insort(self._bounds, self._entry(job))

    def remove(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        self._stretches.pop(job_id, None)
        self._falls.pop(job_id, None)
        if self._unsteady.pop(job_id, None) is None:
            del self._bounds[bisect_left(self._bounds, self._entry(job))]
        else:
            self._unsteady_jobs = None

    def at(self, now: float, margin: float) -> RankingAt:
        return RankingAt(self, now, margin)

    def unsteady(self) -> list[Job]:
        """Jobs whose rank may move back, in the order of their ids."""
        if self._unsteady_jobs is None:
            ids = sorted(self._unsteady, key=self._unsteady.__getitem__)
            self._unsteady_jobs = [self._jobs[job_id] for job_id in ids]
        return self._unsteady_jobs

    def steady(self) -> Iterator[tuple[float, Job]]:
        """Jobs whose rank never moves behind the returned place; the last place first."""
        return ((-bound, self._jobs[job_id]) for bound, _, job_id in self._bounds)

    def rank(self, job: Job, now: float) -> Rank:
        rank = rank_in(self._policy, job, self._rules, now)
        assert rank is not None
        return rank

    def point(self, job: Job, now: float, margin: float) -> float:
        """The job may be preempted by jobs before this place: its own, less the margin."""
        rank = self.rank(job, now)
        return rank.place - (max(margin * rank.cost, rank.least_lead) if rank.cost else 0.0)

    def stretch(self, job: Job, now: float, margin: float) -> Stretch:
        """A bound of the point of an unsteady job. Computed anew only when the job has moved back."""
        known = self._stretches.get(job.id)
        if known is None or known.margin != margin or not known.since <= now < (known.falls_at or now):
            falls_at = self._falls_behind_at(job, now)
            known = Stretch(since=now, falls_at=falls_at, margin=margin, bound=self.point(job, now, margin))
            self._stretches[job.id] = known
        return known

    def next_fall_behind(self, job: Job, now: float, margin: float, place: float) -> float | None:
        """When an unsteady job moves back so far that a job at this place may preempt it; None if it never does."""
        known = self._falls.get(job.id)
        if known is None or known.margin != margin:
            known = self._falls[job.id] = Falls(self, job, margin)
        return known.next_behind(place, now)

    def falls_of(self, job: Job) -> Iterator[float]:
        return falls_of(job, self._rules) if POLICIES[self._policy].looks_at_run_times else iter(())

    def _falls_behind_at(self, job: Job, now: float) -> float | None:
        return falls_behind_at(job, self._rules, now) if POLICIES[self._policy].looks_at_run_times else None

    def _entry(self, job: Job) -> tuple[float, int, str]:
        return (-self.rank(job, job.started_at or 0.0).place, job.serial, job.id)


class Falls:
    """The moments at which an attempt moves back, and its point after each of them. They depend on the job alone, not
    on the time at which they are asked for, so that equal snapshots give equal plans."""

    __slots__ = ("_coming", "_job", "_points", "_ranking", "_times", "margin")

    def __init__(self, ranking: Ranking, job: Job, margin: float) -> None:
        self.margin = margin
        self._ranking = ranking
        self._job = job
        self._coming = ranking.falls_of(job)
        #: as far as was asked for
        self._times: list[float] = []
        self._points: list[float] = []

    def next_behind(self, place: float, now: float) -> float | None:
        """The first fall from now on after which the point is behind this place, or the last of the next few."""
        number, seen = bisect_right(self._times, now), 0
        while number < len(self._times) or self._read():
            at = self._times[number]
            if at > now:
                seen += 1
                if self._points[number] > place or seen == _MOST_FALLS:
                    return at
            number += 1
        return None

    def _read(self) -> bool:
        """Read one more fall; False if there is none."""
        reached = self._times[-1] if self._times else -math.inf
        for fall in self._coming:
            at = fall + _ROUNDING_SECONDS
            # Falls at one moment are one fall.
            if fall > reached and at > fall:
                self._times.append(at)
                self._points.append(self._ranking.point(self._job, at, self.margin))
                return True
        return False


class Stretch(NamedTuple):
    """A time in which the point of a running job only moves to the front."""

    since: float
    #: when the job runs longer than assumed and moves back; None if it does not, or if that is not known
    falls_at: float | None
    margin: float
    bound: float


class RankingAt:
    """The ranking at one moment. Each rank is computed once, when it is first asked for."""

    def __init__(self, ranking: Ranking, now: float, margin: float) -> None:
        self._ranking = ranking
        self._now = now
        self._margin = margin
        self._points: dict[str, float] = {}
        #: no job is behind this place, as far as is known
        self._none_behind = math.inf
        #: the first place that was asked for
        self._first_place = math.inf

    def behind(self, place: float) -> Iterator[Job]:
        """Jobs that a job at this place may preempt: it is ahead of them by the margin."""
        self._first_place = min(self._first_place, place)
        if place >= self._none_behind:
            return
        found = False
        for job in self._unsteady_behind(place):
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
        """When the next job runs longer than assumed and moves behind a place that was asked for."""
        place = self._first_place
        if place == math.inf:
            return None
        falls = (
            self._ranking.next_fall_behind(job, self._now, self._margin, place) for job in self._ranking.unsteady()
        )
        return min((at for at in falls if at is not None), default=None)

    def _unsteady_behind(self, place: float) -> list[Job]:
        """The last place first."""
        ranking, now, margin = self._ranking, self._now, self._margin
        close = (job for job in ranking.unsteady() if ranking.stretch(job, now, margin).bound > place)
        points = [(point, job) for job in close if (point := self._point(job)) > place]
        return [job for _, job in sorted(points, key=lambda item: (-item[0], item[1].serial))]

    def _point(self, job: Job) -> float:
        point = self._points.get(job.id)
        if point is None:
            point = self._points[job.id] = self._ranking.point(job, self._now, self._margin)
        return point
