"""Running jobs of a queue whose order preempts, kept in order while jobs start and end.

While a job runs its rank only moves to the front, so that its rank at the start is a bound: jobs whose bound is small
enough need not be considered. Jobs without a prediction or a time limit are the exception, and are considered each
time.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

from corral.core.model import Job, JobState
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import OrderingRules, Rank, falls_of, next_fall_at

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
        #: jobs whose rank may move back
        self._unsteady: dict[str, Job] = {}
        #: by margin: the same jobs, in order; built when first asked for
        self._by_margin: dict[float | None, Unsteady] = {}
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        if not job.preemptible or job.state not in (JobState.STARTING, JobState.RUNNING) or job.pinned_at is not None:
            return
        self._jobs[job.id] = job
        if self.next_fall_at(job, 0.0) is not None:
            self._unsteady[job.id] = job
            for unsteady in self._by_margin.values():
                unsteady.add(job)
        else:
            insort(self._bounds, self._entry(job))

    def remove(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        if self._unsteady.pop(job_id, None) is None:
            del self._bounds[bisect_left(self._bounds, self._entry(job))]
        else:
            for unsteady in self._by_margin.values():
                unsteady.remove(job_id)

    def at(self, now: float, margin: float | None) -> RankingAt:
        """The ranking at a moment. If the margin is None, every job before a running one may preempt it, however small
        its lead is.
        """
        return RankingAt(self, now, margin)

    def unsteady(self, margin: float | None) -> Unsteady:
        """Jobs whose rank may move back."""
        found = self._by_margin.get(margin)
        if found is None:
            found = self._by_margin[margin] = Unsteady(self, margin, self._unsteady.values())
        return found

    def steady(self) -> Iterator[tuple[float, Job]]:
        """Jobs whose rank never moves behind the returned place; the last place first."""
        return ((-bound, self._jobs[job_id]) for bound, _, job_id in self._bounds)

    def rank(self, job: Job, now: float) -> Rank:
        rank = rank_in(self._policy, job, self._rules, now)
        assert rank is not None
        return rank

    def point(self, job: Job, now: float, margin: float | None) -> float:
        """The job may be preempted by jobs before this place: its own, less the margin."""
        rank = self.rank(job, now)
        if margin is None:
            return rank.place
        return rank.place - (max(margin * rank.cost, rank.least_lead) if rank.cost else 0.0)

    def falls_of(self, job: Job) -> Iterator[float]:
        return falls_of(job, self._rules) if POLICIES[self._policy].looks_at_run_times else iter(())

    def next_fall_at(self, job: Job, now: float) -> float | None:
        return next_fall_at(job, self._rules, now) if POLICIES[self._policy].looks_at_run_times else None

    def _entry(self, job: Job) -> tuple[float, int, str]:
        return (-self.rank(job, job.started_at or 0.0).place, job.serial, job.id)


class Unsteady:
    """Jobs whose rank may move back, with one margin, in two orders: by a bound of their points and by their next
    falls. Between two falls a point only moves to the front, so that its value after a fall is a bound until the next
    one. Both orders are updated as time passes: a query costs what changed and what it finds.
    """

    def __init__(self, ranking: Ranking, margin: float | None, jobs: Iterable[Job]) -> None:
        self._ranking = ranking
        self._margin = margin
        self._jobs = {job.id: job for job in jobs}
        self._falls: dict[str, Falls] = {}
        self._now = -math.inf
        #: by job: its entry in `_bounds`
        self._bound_of: dict[str, tuple[float, int, str]] = {}
        #: the last bound first
        self._bounds: list[tuple[float, int, str]] = []
        #: a heap: when each bound ends, with the bound that is meant
        self._ends: list[tuple[float, str, float]] = []
        #: the next fall of each job, soonest first
        self._next: list[tuple[float, int, str]] = []
        self._next_of: dict[str, tuple[float, int, str]] = {}
        #: jobs that are in neither order yet
        self._new: set[str] = set(self._jobs)

    def add(self, job: Job) -> None:
        self.remove(job.id)
        self._jobs[job.id] = job
        self._new.add(job.id)

    def remove(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)
        self._falls.pop(job_id, None)
        self._new.discard(job_id)
        _take_out(self._bounds, self._bound_of.pop(job_id, None))
        _take_out(self._next, self._next_of.pop(job_id, None))

    def close(self, now: float, place: float) -> Iterator[Job]:
        """Jobs whose point may be behind this place."""
        self._go_on(now)
        for bound, _, job_id in self._bounds:
            if -bound <= place:
                return
            yield self._jobs[job_id]

    def next_fall(self, now: float, place: float) -> float | None:
        """When the next job moves back so far that a job at this place may preempt it."""
        self._go_on(now)
        soonest: float | None = None
        for at, _, job_id in self._next:
            if soonest is not None and at >= soonest:
                break
            fall = self._falls[job_id].next_fall_past(place, now)
            if fall is not None and (soonest is None or fall < soonest):
                soonest = fall
        return soonest

    def _go_on(self, now: float) -> None:
        if now < self._now:
            # Only in a look back: nothing that is kept holds for an earlier time.
            self._bounds, self._ends, self._next = [], [], []
            self._bound_of, self._next_of = {}, {}
            self._new = set(self._jobs)
        self._now = now
        for job_id in sorted(self._new):
            self._falls.setdefault(job_id, Falls(self._ranking, self._jobs[job_id], self._margin))
            self._bound(job_id, now)
            self._fall(job_id, now)
        self._new.clear()
        while self._ends and self._ends[0][0] <= now:
            _, job_id, bound = heapq.heappop(self._ends)
            known = self._bound_of.get(job_id)
            if known is not None and known[0] == bound:
                self._bound(job_id, now)
        while self._next and self._next[0][0] <= now:
            self._fall(self._next[0][2], now)

    def _bound(self, job_id: str, now: float) -> None:
        job = self._jobs[job_id]
        _take_out(self._bounds, self._bound_of.get(job_id))
        entry = self._bound_of[job_id] = (-self._ranking.point(job, now, self._margin), job.serial, job_id)
        insort(self._bounds, entry)
        ends_at = self._ranking.next_fall_at(job, now)
        # Without a known fall the bound holds for this moment only, and a fall that is not over yet is asked for again.
        heapq.heappush(self._ends, (max(math.nextafter(now, math.inf), ends_at or now), job_id, entry[0]))

    def _fall(self, job_id: str, now: float) -> None:
        _take_out(self._next, self._next_of.pop(job_id, None))
        at = self._falls[job_id].next_after(now)
        if at is not None:
            entry = self._next_of[job_id] = (at, self._jobs[job_id].serial, job_id)
            insort(self._next, entry)


def _take_out(ordered: list[tuple[float, int, str]], entry: tuple[float, int, str] | None) -> None:
    if entry is not None:
        del ordered[bisect_left(ordered, entry)]


class Falls:
    """The moments at which an attempt moves back, and its point after each of them. They depend on the job alone, not
    on the time at which they are asked for, so that equal snapshots give equal plans."""

    __slots__ = ("_answer", "_coming", "_job", "_points", "_ranking", "_times", "margin")

    def __init__(self, ranking: Ranking, job: Job, margin: float | None) -> None:
        self.margin = margin
        self._ranking = ranking
        self._job = job
        self._coming = ranking.falls_of(job)
        #: as far as was asked for
        self._times: list[float] = []
        self._points: list[float] = []
        #: a cache: the last answer of `next_fall_past`, with the place that was asked for, and since when and until
        #: which fall the answer is the same
        self._answer: tuple[float, float, float, float | None] = (math.nan, 0.0, 0.0, None)

    def next_after(self, now: float) -> float | None:
        """The first fall from now on."""
        number = bisect_right(self._times, now)
        while number < len(self._times) or self._read():
            if self._times[number] > now:
                return self._times[number]
            number += 1
        return None

    def next_fall_past(self, place: float, now: float) -> float | None:
        """The first fall from now on after which the point is behind this place, or the last of the next few."""
        known_place, since, until, known = self._answer
        if place == known_place and since <= now < until:
            return known
        number, seen, following, found = bisect_right(self._times, now), 0, math.inf, None
        while number < len(self._times) or self._read():
            at = self._times[number]
            if at > now:
                seen += 1
                following = min(following, at)
                if self._points[number] > place or seen == _MOST_FALLS:
                    found = at
                    break
            number += 1
        self._answer = (place, now, following, found)
        return found

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


class RankingAt:
    """The ranking at one moment. Each rank is computed once, when it is first asked for."""

    def __init__(self, ranking: Ranking, now: float, margin: float | None) -> None:
        self._ranking = ranking
        self._now = now
        self._margin = margin
        self._points: dict[str, float] = {}
        #: no job is behind this place, as far as is known
        self._none_after = math.inf
        #: the first place that was asked for
        self._first_place = math.inf

    def behind(self, place: float) -> Iterator[Job]:
        """Jobs that a job at this place may preempt: it is ahead of them by the margin."""
        self._first_place = min(self._first_place, place)
        if place >= self._none_after:
            return
        found = False
        for job in self._unsteady_after(place):
            found = True
            yield job
        for bound, job in self._ranking.steady():
            if bound <= place:
                break
            if self._point(job) > place:
                found = True
                yield job
        if not found:
            self._none_after = place

    def next_fall(self) -> float | None:
        """When the next job runs longer than assumed and moves behind a place that was asked for."""
        place = self._first_place
        if place == math.inf:
            return None
        return self._ranking.unsteady(self._margin).next_fall(self._now, place)

    def _unsteady_after(self, place: float) -> list[Job]:
        """The last place first."""
        close = self._ranking.unsteady(self._margin).close(self._now, place)
        points = [(point, job) for job in close if (point := self._point(job)) > place]
        return [job for _, job in sorted(points, key=lambda item: (-item[0], item[1].serial))]

    def _point(self, job: Job) -> float:
        point = self._points.get(job.id)
        if point is None:
            point = self._points[job.id] = self._ranking.point(job, self._now, self._margin)
        return point
