"""The remaining time of a job, sampled anew for each rollout.

A prediction has two quantiles of similar runs, p50 and p90; run times are assumed to be log-normal around them, as they
mostly are. The time that the job has run already counts: beyond the p50 a longer run time is expected than predicted,
and beyond the p90 the prediction was wrong, and a still longer one is expected. Of a job without a time limit of which
no run of the same name is known, a life table says more (`life_tables`). The samples are deterministic: the same job in
the same rollout always gets the same run time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import NormalDist

from corral.core.model import Job, JobState
from corral.core.scheduling.forecast.life_tables import NO_TABLES, Hazard, Hazards, Tables, is_enough
from corral.core.scheduling.forecast.run_time_model import has_similar_runs, life_table_keys
from corral.core.scheduling.ordering.cost import OrderingRules

#: The 0.9 quantile of the normal distribution.
_Z90 = NormalDist().inv_cdf(0.9)
#: The correlation of prediction errors: in a rollout in which one job is late, other jobs are late too.
SHARED = 0.4
#: The run time as a part of the time limit: most users ask for about twice the time needed, some for much more.
LIMIT_MEDIAN = 0.5
LIMIT_SIGMA = 1.0
#: With fewer runs than this the spread is underestimated: a single run has none.
SURE_RUNS = 32
FEW_RUNS_SIGMA = 0.7
#: For a job without a prediction and a time limit: p90 / p50.
UNKNOWN_SPREAD = 4.0
#: The least remaining time.
LEAST_SECONDS = 1.0

_STEPS = 512
#: the normal quantiles at the middles of equal steps
_QUANTILES = tuple(NormalDist().inv_cdf((step + 0.5) / _STEPS) for step in range(_STEPS))
_NORMAL = NormalDist()
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Length:
    """The distribution of a run time from the start: median, log-normal sigma (0: it is exact), and the most."""

    median: float
    sigma: float
    most: float = math.inf
    is_known: bool = True
    #: whether there are neither runs of the same name nor a time limit, so that a life table is the better distribution
    is_vague: bool = False
    #: hazard of a life table, used instead of median and sigma
    hazard: Hazard | None = None
    #: the work that was saved before the next or last start, with a hazard
    saved: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutSample:
    """The identity of a rollout: its number, and how late all jobs are in it, from early (negative) to late."""

    number: int = 0
    late: float = 0.0


class Outlook:
    """Answers of the life tables at one moment. Without tables there are none."""

    def __init__(self, tables: Tables = NO_TABLES, jobs: Iterable[Job] = (), now: float = 0.0) -> None:
        self._hazards: Hazards | None = None
        if is_enough(tables):
            runs = ((life_table_keys(job), worked_seconds(job, now)) for job in jobs if job.started_at is not None)
            self._hazards = Hazards(tables, runs)

    def length_of(self, job: Job, rules: OrderingRules) -> Length:
        """The distribution of a job's run time from its next or last start."""
        return self.refined(job, length_of(job, rules))

    def refined(self, job: Job, length: Length) -> Length:
        """The same with what the life tables say of the job."""
        if self._hazards is None or not length.is_vague:
            return length
        return replace(length, hazard=self._hazards.of(life_table_keys(job)), saved=job.saved_seconds)


NO_OUTLOOK = Outlook()


def length_of(job: Job, rules: OrderingRules) -> Length:
    """The same without life tables."""
    length = _length_of(job, rules)
    is_vague = math.isinf(length.most) and length.sigma > 0 and job.elastic is None and not has_similar_runs(job)
    return replace(length, is_vague=True) if is_vague else length


def _length_of(job: Job, rules: OrderingRules) -> Length:
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
    """Combines the prediction with the time limit: the wider the prediction, the more the limit counts."""
    if math.isinf(length.most) or not length.sigma:
        return Length(min(length.median, length.most), length.sigma, length.most)
    if length.median >= length.most:
        return Length(length.most, 0.0, length.most)
    runs, limit = length.sigma**-2, LIMIT_SIGMA**-2
    asked = max(LEAST_SECONDS, length.most * LIMIT_MEDIAN)
    median = math.exp((runs * math.log(length.median) + limit * math.log(asked)) / (runs + limit))
    return Length(median, (runs + limit) ** -0.5, length.most)


def seconds_from_start(length: Length, serial: int, sample: RolloutSample) -> float:
    """The run time, in that rollout, of a job that has not started."""
    if length.hazard is not None:
        return _by_hazard(length.hazard, length.saved, serial, sample)
    if not length.sigma:
        return length.median
    return min(length.most, length.median * math.exp(length.sigma * _lateness(serial, sample)))


def seconds_left(length: Length, ran: float, serial: int, sample: RolloutSample) -> float:
    """The remaining time, in that rollout, of a job that has run for `ran` seconds."""
    if length.hazard is not None:
        return _by_hazard(length.hazard, length.saved + ran, serial, sample)
    # A quotient that underflows to 0 has no logarithm.
    part = ran / length.median
    if part <= 0:
        return seconds_from_start(length, serial, sample)
    # A job that runs beyond the p90 shows that the prediction was too narrow.
    sigma = max(length.sigma, math.log(max(1.0, part)) / _Z90)
    if not sigma:
        return max(LEAST_SECONDS, length.median - ran)
    gone = _NORMAL.cdf(math.log(part) / sigma)
    level = gone + (1.0 - gone) * _NORMAL.cdf(_lateness(serial, sample))
    total = length.median * math.exp(sigma * _NORMAL.inv_cdf(min(level, 1.0 - 1e-9)))
    return max(LEAST_SECONDS, min(total, length.most) - ran)


def _by_hazard(hazard: Hazard, worked: float, serial: int, sample: RolloutSample) -> float:
    return max(LEAST_SECONDS, hazard.end(worked, _NORMAL.cdf(_lateness(serial, sample))) - worked)


def worked_seconds(job: Job, now: float) -> float:
    """The run time of a job including the work of earlier attempts that was saved."""
    return job.saved_seconds + ran_seconds(job, now)


def ran_seconds(job: Job, now: float) -> float:
    """The run time of a job since its last start, including the time before it was resized."""
    if job.started_at is None:
        return job.ran_seconds
    return job.ran_seconds + max(0.0, now - job.started_at)


def is_ending(job: Job) -> bool:
    """Whether the job was asked to stop: it ends within its grace time."""
    return job.state is JobState.STOPPING


def chance(serial: int, sample: RolloutSample) -> float:
    """A pseudo-random number from 0 to 1 that is always the same for a job in a rollout."""
    return _mixed(serial, sample) % 65_536 / 65_536


def _lateness(serial: int, sample: RolloutSample) -> float:
    """The normal quantile of a job in a rollout: partly that of the rollout, partly its own."""
    return SHARED * sample.late + _OWN * _QUANTILES[_mixed(serial, sample) % _STEPS]


def _mixed(serial: int, sample: RolloutSample) -> int:
    """A hash of the job and the rollout."""
    mixed = (serial * 0x9E3779B97F4A7C15 + sample.number * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed >> 33


_OWN = math.sqrt(1.0 - SHARED * SHARED)
