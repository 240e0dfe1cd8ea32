"""The outcome of a run: waiting, completion, slowdown, utilisation, GPU time by user, and lost GPU time.

It is counted during the run, in bounded memory: a distribution is a set of narrow buckets, and a time series has a
fixed number of steps, whatever the trace. Sums, means, counts and extremes are exact; percentiles are exact to the
width of a bucket, half a percent.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from corral.core.model import WHOLE, Allocation, Job
from corral.simulator.simulation import Arrival

#: The growth of the bucket width of a distribution.
BUCKET_GROWTH = 1.005
#: Values below this are in one bucket.
LEAST = 0.001
#: The most steps of a time series.
SERIES_STEPS = 1024
#: Shorter run times count as this: the slowdown of a job of a millisecond means nothing.
SLOWDOWN_SECONDS = 10.0
HOUR = 3600.0
#: The relative rounding error of sums of times.
ROUNDING = 1e-6


class Distribution:
    """Amounts from 0 on, such as waiting times."""

    def __init__(self) -> None:
        self.count = 0
        self.most = 0.0
        self._sum = 0.0
        self._buckets: dict[int, int] = defaultdict(int)

    def add(self, value: float) -> None:
        self.count += 1
        self._sum += value
        self.most = max(self.most, value)
        self._buckets[_bucket_of(value)] += 1

    @property
    def mean(self) -> float:
        return self._sum / self.count if self.count else 0.0

    def percentile(self, percent: float) -> float:
        """The least value that so many percent of all values do not exceed."""
        wanted = math.ceil(self.count * percent / 100)
        for value, below in self._steps():
            if below >= wanted:
                return value
        return self.most

    def cumulative(self) -> list[tuple[float, float]]:
        """Values, with the part of all values that does not exceed each of them."""
        return [(value, below / self.count) for value, below in self._steps()]

    def _steps(self) -> Iterator[tuple[float, int]]:
        below = 0
        for bucket in sorted(self._buckets):
            below += self._buckets[bucket]
            yield min(_value_of(bucket), self.most), below


def _bucket_of(value: float) -> int:
    return 0 if value < LEAST else 1 + int(math.log(value / LEAST) / math.log(BUCKET_GROWTH))


def _value_of(bucket: int) -> float:
    """The middle of the bucket."""
    return LEAST * BUCKET_GROWTH ** (bucket - 0.5) if bucket else 0.0


class TimeSeries:
    """An amount over time, as its mean in each of at most `SERIES_STEPS` equal steps.

    Amounts are added with their start and end, in any order. When an amount reaches beyond the last step, pairs of
    steps are merged.
    """

    def __init__(self, since: float, step: float = 1.0) -> None:
        self.since = since
        self.step = step
        #: the integral of amounts that start or end within each step, and the change for all steps after it
        self._within = [0.0] * SERIES_STEPS
        self._change = [0.0] * (SERIES_STEPS + 1)

    def add(self, since: float, until: float, amount: float) -> None:
        while until > self.since + self.step * SERIES_STEPS:
            self._merge_steps()
        self._begin(since, amount)
        self._begin(until, -amount)

    def means(self, until: float) -> list[tuple[float, float]]:
        """The start of each step and the mean within it, up to that time."""
        found = []
        for number, integral in enumerate(self._integrals()):
            begin = self.since + number * self.step
            if begin >= until:
                break
            found.append((begin, integral / (min(until, begin + self.step) - begin)))
        return found

    def _begin(self, at: float, amount: float) -> None:
        """Adds this amount to the series from a time on."""
        place = min(int((at - self.since) / self.step), SERIES_STEPS)
        if place < SERIES_STEPS:
            self._within[place] += amount * (self.since + (place + 1) * self.step - at)
            self._change[place + 1] += amount

    def _integrals(self) -> list[float]:
        integrals, level = [], 0.0
        for within, change in zip(self._within, self._change, strict=False):
            level += change
            integrals.append(within + level * self.step)
        return integrals

    def _merge_steps(self) -> None:
        integrals = self._integrals()
        # All added amounts have an end before this, so that nothing reaches into the new steps.
        self._within = [a + b for a, b in zip(integrals[::2], integrals[1::2], strict=True)]
        self._within += [0.0] * (SERIES_STEPS - len(self._within))
        self._change = [0.0] * (SERIES_STEPS + 1)
        self.step *= 2


def jain_index(amounts: Iterable[float]) -> float:
    """1 when all have the same, 1/n when one of n has everything."""
    known = list(amounts)
    squares = sum(amount * amount for amount in known)
    return sum(known) ** 2 / (len(known) * squares) if squares else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A job that has ended, as a row of the results."""

    job: Job
    queued_at: float
    #: the first start
    started_at: float
    ended_at: float
    #: as in the trace
    run_seconds: float
    #: whether the job reached its time limit before it was done
    is_cut: bool
    #: how long it held resources, in all its attempts
    held_seconds: float
    preemptions: int = 0
    moves: int = 0
    #: the cost of its preemptions and moves
    lost_gpu_seconds: float = 0.0

    @property
    def wait_seconds(self) -> float:
        """The seconds in the queue: before its first attempt, and after every preemption."""
        return max(0.0, self.completion_seconds - self.held_seconds)

    @property
    def completion_seconds(self) -> float:
        return self.ended_at - self.queued_at

    @property
    def slowdown(self) -> float:
        """The completion time relative to the run time without the cost of preemptions."""
        gpus = self.job.request.total_gpu_milli / WHOLE
        ran = self.held_seconds - (self.lost_gpu_seconds / gpus if gpus else 0.0)
        return max(1.0, self.completion_seconds / max(ran, SLOWDOWN_SECONDS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A job held this allocation for that time."""

    job: Job
    since: float
    until: float
    allocation: Allocation


def _no_details(event: Ran | Held) -> None:
    """The details are not reported."""


@dataclass(slots=True)
class _Life:
    """A job that has not ended: what it has held and lost so far."""

    first_held_at: float
    held_until: float
    held_seconds: float = 0.0
    preemptions: int = 0
    moves: int = 0
    lost_gpu_seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """A watcher of a simulation that counts. Details are passed to `on_detail` and not kept."""

    gpus: int
    #: when the first job arrives
    since: float
    #: by user: the group; empty for a trace without groups
    group_of: dict[str, str] = field(default_factory=dict)
    on_detail: Callable[[Ran | Held], None] = _no_details
    waits: Distribution = field(default_factory=Distribution)
    completions: Distribution = field(default_factory=Distribution)
    slowdowns: Distribution = field(default_factory=Distribution)
    gpu_seconds_by_user: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    #: attempts that were preempted, and the lost GPU time by preemptions and time limits
    preemptions_by_user: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lost_gpu_seconds_by_user: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    #: attempts that were moved to another node
    moves: int = 0
    ended_jobs: int = 0
    #: jobs that had not ended when the run was over
    unfinished_jobs: int = 0
    cut_jobs: int = 0
    until: float = 0.0
    #: the jobs that have started and not ended
    _lives: dict[str, _Life] = field(default_factory=dict)
    _used: TimeSeries = field(init=False)
    _waiting: TimeSeries = field(init=False)

    def __post_init__(self) -> None:
        self.until = self.since
        self._used = TimeSeries(self.since)
        self._waiting = TimeSeries(self.since)

    # ---------------------------------------------------------------- while it runs

    def held(self, job: Job, since: float, until: float, allocation: Allocation) -> None:
        gpus = allocation.total_gpu_milli / WHOLE
        self.until = max(self.until, until)
        self.gpu_seconds_by_user[job.user] += gpus * (until - since)
        if gpus:
            self._used.add(since, until, gpus)
        life = self._lives.get(job.id)
        if life is None:
            life = self._lives[job.id] = _Life(first_held_at=since, held_until=job.created_at)
        self._waiting.add(life.held_until, since, 1.0)
        life.held_until = until
        life.held_seconds += until - since
        self.on_detail(Held(job=job, since=since, until=until, allocation=allocation))

    def preempted(self, job: Job, lost_gpu_seconds: float) -> None:
        self._lives[job.id].preemptions += 1
        self.preemptions_by_user[job.user] += 1
        self.restarted(job, lost_gpu_seconds)

    def moved(self, job: Job, lost_gpu_seconds: float) -> None:
        self.moves += 1
        self._lives[job.id].moves += 1
        self.restarted(job, lost_gpu_seconds)

    def restarted(self, job: Job, lost_gpu_seconds: float) -> None:
        self._lives[job.id].lost_gpu_seconds += lost_gpu_seconds
        self.lost_gpu_seconds_by_user[job.user] += lost_gpu_seconds

    def ended(self, job: Job, arrival: Arrival) -> None:
        assert job.ended_at is not None
        life = self._lives.pop(job.id)
        gpus = job.request.total_gpu_milli / WHOLE
        worked = life.held_seconds - (life.lost_gpu_seconds / gpus if gpus else 0.0)
        ran = Ran(
            job=job,
            queued_at=arrival.job.created_at,
            started_at=life.first_held_at,
            ended_at=job.ended_at,
            run_seconds=arrival.run_seconds,
            is_cut=job.elastic is None and worked < arrival.run_seconds * (1 - ROUNDING) - ROUNDING,
            held_seconds=life.held_seconds,
            preemptions=life.preemptions,
            moves=life.moves,
            lost_gpu_seconds=life.lost_gpu_seconds,
        )
        self.ended_jobs += 1
        self.waits.add(ran.wait_seconds)
        self.completions.add(ran.completion_seconds)
        self.slowdowns.add(ran.slowdown)
        if ran.is_cut:
            self.cut_jobs += 1
            self.lost_gpu_seconds_by_user[job.user] += gpus * worked
        self.on_detail(ran)

    # ---------------------------------------------------------------- when it is over

    @property
    def makespan_seconds(self) -> float:
        return self.until - self.since

    @property
    def gpu_seconds(self) -> float:
        return sum(self.gpu_seconds_by_user.values())

    @property
    def preemptions(self) -> int:
        """Attempts that were preempted."""
        return sum(self.preemptions_by_user.values())

    @property
    def lost_gpu_seconds(self) -> float:
        """Lost GPU time: jobs that reached their time limit, and the cost of preemptions."""
        return sum(self.lost_gpu_seconds_by_user.values())

    @property
    def utilization(self) -> float:
        """The part of the fleet's GPU time that was held, from the first arrival to the last end."""
        offered = self.gpus * self.makespan_seconds
        return self.gpu_seconds / offered if offered else 0.0

    def used_gpus(self) -> list[tuple[float, float]]:
        """GPUs in use over time: seconds since the first arrival, and the mean within the step."""
        return [(at - self.since, mean) for at, mean in self._used.means(self.until)]

    def waiting_jobs(self) -> list[tuple[float, float]]:
        return [(at - self.since, mean) for at, mean in self._waiting.means(self.until)]

    def by_group(self, by_user: Mapping[str, float]) -> dict[str, float]:
        groups: dict[str, float] = defaultdict(float)
        for user, amount in by_user.items():
            groups[self.group_of.get(user, "")] += amount
        return dict(groups)

    def gpu_seconds_by_group(self) -> dict[str, float]:
        return self.by_group(self.gpu_seconds_by_user)

    @property
    def jain(self) -> float:
        """Jain's index of the users' GPU time."""
        return jain_index(self.gpu_seconds_by_user.values())
