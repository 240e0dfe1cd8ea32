"""How much longer a job will hold what it holds, as a guess that differs from one supposed rollout to the next.

A prediction says two things, the half and the nine tenths of the runs that were like it; between and beyond them run
times are taken as log-normal, as they mostly are. What has been run already counts: a job that outlived its half is
expected longer than was predicted, and one that outlived even the nine tenths shows that the prediction was wrong, and
is expected longer still. Nothing here is drawn by chance: the same job in the same rollout always gets the same guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from corral.core.model import Job, JobState
from corral.core.scheduling.ordering.cost import OrderingRules

#: The nine tenths of a normal distribution.
_Z90 = NormalDist().inv_cdf(0.9)
#: How much of what is wrong about predictions is wrong about all of them alike: a rollout in which one job is late is
#: one in which others are late, too.
SHARED = 0.4
#: Most ask for about twice the time that they need, some for much more.
LIMIT_MEDIAN = 0.5
LIMIT_SIGMA = 1.0
#: Fewer runs than this are less sure than they look: one alone has no spread at all.
SURE_RUNS = 32
FEW_RUNS_SIGMA = 0.7
#: Of a job of which nothing is known at all: how much longer than supposed one in ten is.
UNKNOWN_SPREAD = 4.0
#: A job that should be over by any guess ends in a moment.
LEAST_SECONDS = 1.0

_STEPS = 512
#: the normal quantiles of as many equal steps, each in its middle
_QUANTILES = tuple(NormalDist().inv_cdf((step + 0.5) / _STEPS) for step in range(_STEPS))
_NORMAL = NormalDist()
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Length:
    """How long a job runs from its start: the half, how far that is spread (0: it is known), and the most."""

    median: float
    sigma: float
    most: float = math.inf
    is_known: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Mood:
    """One supposed rollout: how late everything is in it, from early (negative) to late, and its number."""

    number: int = 0
    late: float = 0.0


def length_of(job: Job, rules: OrderingRules) -> Length:
    """What is known of a job's run time, from its next or last start on."""
    most = math.inf if job.time_left_seconds is None else job.time_left_seconds
    known = job.predicted
    if known is not None:
        median = max(LEAST_SECONDS, known.p50_seconds)
        sigma = math.log(max(1.0, known.p90_seconds / median)) / _Z90
        if known.samples < SURE_RUNS:
            sigma = max(sigma, FEW_RUNS_SIGMA / math.sqrt(known.samples))
        return _within_limit(Length(median, sigma, most))
    if math.isfinite(most):
        return Length(max(LEAST_SECONDS, most * LIMIT_MEDIAN), LIMIT_SIGMA, most)
    return Length(max(LEAST_SECONDS, rules.unknown_seconds), math.log(UNKNOWN_SPREAD) / _Z90, most, is_known=False)


def _within_limit(length: Length) -> Length:
    """A time limit says something about the run time, too: the more so, the less the runs like it say."""
    if math.isinf(length.most) or not length.sigma:
        return Length(min(length.median, length.most), length.sigma, length.most)
    if length.median >= length.most:
        return Length(length.most, 0.0, length.most)
    runs, limit = length.sigma**-2, LIMIT_SIGMA**-2
    asked = max(LEAST_SECONDS, length.most * LIMIT_MEDIAN)
    median = math.exp((runs * math.log(length.median) + limit * math.log(asked)) / (runs + limit))
    return Length(median, (runs + limit) ** -0.5, length.most)


def seconds_from_start(length: Length, serial: int, mood: Mood) -> float:
    """How long a job runs in that rollout that has yet to start."""
    if not length.sigma:
        return length.median
    return min(length.most, length.median * math.exp(length.sigma * _lateness(serial, mood)))


def seconds_left(length: Length, ran: float, serial: int, mood: Mood) -> float:
    """How much longer it runs in that rollout after so many seconds."""
    # Next to nothing is nothing: it has no logarithm.
    part = ran / length.median
    if part <= 0:
        return seconds_from_start(length, serial, mood)
    # Who is still there although nine in ten like it would be gone was judged wrongly.
    sigma = max(length.sigma, math.log(max(1.0, part)) / _Z90)
    if not sigma:
        return max(LEAST_SECONDS, length.median - ran)
    gone = _NORMAL.cdf(math.log(part) / sigma)
    level = gone + (1.0 - gone) * _NORMAL.cdf(_lateness(serial, mood))
    total = length.median * math.exp(sigma * _NORMAL.inv_cdf(min(level, 1.0 - 1e-9)))
    return max(LEAST_SECONDS, min(total, length.most) - ran)


def ran_seconds(job: Job, now: float) -> float:
    """How long a job that holds something has run since its last start, with what it ran before it was resized."""
    if job.started_at is None:
        return job.ran_seconds
    return job.ran_seconds + max(0.0, now - job.started_at)


def is_ending(job: Job) -> bool:
    """It was told to stop, and is gone when its grace time is over at the latest."""
    return job.state is JobState.STOPPING


def chance(serial: int, mood: Mood) -> float:
    """A number from 0 to 1 that is always the same for a job in a rollout."""
    return _mixed(serial, mood) % 65_536 / 65_536


def _lateness(serial: int, mood: Mood) -> float:
    """A job's place between early and late in a rollout: partly the rollout's, partly its own."""
    return SHARED * mood.late + _OWN * _QUANTILES[_mixed(serial, mood) % _STEPS]


def _mixed(serial: int, mood: Mood) -> int:
    """As good as drawn by chance."""
    mixed = (serial * 0x9E3779B97F4A7C15 + mood.number * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed >> 33


_OWN = math.sqrt(1.0 - SHARED * SHARED)
