"""The run time model: predicts how long a job will run from completed runs.

Runs are stored under keys from specific to general: this user's jobs of this name with these GPUs of this model, and so
on to all jobs of this kind and size. A prediction comes from the most specific key with enough runs and names that key;
without such a key there is no prediction. Only the latest runs of each key are kept, and only the keys that were
updated last, so that memory is bounded.

Only completed runs count. A run that was stopped, failed or reached its time limit would have taken longer: to count it
would make predictions too short. The saved work of such a job counts for its next attempt (`done_seconds`): then only
similar runs that took longer are used.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from corral.core.copies import replace
from corral.core.counts import counted
from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Allocation, Job, JobKind, JobState, Prediction
from corral.core.scheduling.forecast.life_tables import LifeTables, TableKey, table_keys

#: How many runs are kept per key, and after how many newer runs a run counts half.
KEPT_RUNS = 32
HALF_LIFE = 8
#: How many keys are kept; each run updates one key of every level.
MOST_KEYS = 20_000
#: How many runs a key needs before it is preferred to a more general one.
ENOUGH = 3
#: How many runs the spread of a user's jobs of one size needs. With fewer the runs of all jobs say more.
ENOUGH_FOR_SPREAD = 16
#: The number of quantiles of a spread, and the width of the buckets behind it. When `_MOST_COUNTED` runs are counted,
#: all counts are halved.
STEPS = 16
_PARTS = tuple((step + 0.5) / STEPS for step in range(STEPS))
_LEAST_SECONDS, _BUCKET_GROWTH = 1.0, 1.02
_MOST_COUNTED, _LEAST_COUNTED = 20_000, 0.01

_NUMBER = re.compile(r"\d+")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{4,}", re.IGNORECASE)
_SEPARATOR = re.compile(r"([-_.])")
_LAST_DIGITS = re.compile(r"\d+$")
_FOLDED = re.compile(r"#(?:[-_.]#)+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Features:
    """The features that jobs are compared by. None if not known yet, for elastic jobs and jobs that take any model."""

    user: str
    name: str
    kind: JobKind
    nodes: int = 1
    #: over all nodes
    gpu_milli: int | None = None
    model: str | None = None


class _Level(NamedTuple):
    """One level of similarity between jobs."""

    key: Callable[[Features], tuple[object, ...] | None]
    text: Callable[[Features], str]
    enough: int
    #: whether the key contains a name: then the kept runs of the key are the spread
    is_named: bool = False
    #: whether all runs of the key are counted: they are the spread as soon as they are `ENOUGH_FOR_SPREAD`. Else, and
    #: before, the spread is that of all jobs.
    is_counted: bool = False


class Spread:
    """The run times of many jobs, counted in narrow buckets. Older runs count less as newer ones are added."""

    def __init__(self) -> None:
        self._counts: dict[int, float] = {}
        self._total = 0.0
        #: a cache: by seconds, what `beyond` returns until a run is added
        self._beyond: dict[float, list[float]] = {}

    @property
    def is_enough(self) -> bool:
        return self._total >= ENOUGH_FOR_SPREAD

    def add(self, seconds: float) -> None:
        bucket = math.ceil(math.log(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS) / math.log(_BUCKET_GROWTH))
        self._counts[bucket] = self._counts.get(bucket, 0.0) + 1.0
        self._total += 1.0
        self._beyond.clear()
        if self._total >= _MOST_COUNTED:
            self._counts = {name: count / 2 for name, count in self._counts.items() if count > _LEAST_COUNTED}
            self._total = math.fsum(self._counts.values())

    def beyond(self, seconds: float) -> list[float]:
        """Quantiles of the runs that took longer; empty if there are too few."""
        known = self._beyond.get(seconds)
        if known is None:
            known = self._beyond[seconds] = self._quantiles_beyond(seconds)
        return known

    def _quantiles_beyond(self, seconds: float) -> list[float]:
        weighed = self._weighed_beyond(seconds)
        if math.fsum(count for _, count in weighed) < ENOUGH:
            return []
        return _quantiles(weighed, _PARTS)

    def count_beyond(self, seconds: float) -> int:
        return round(math.fsum(count for _, count in self._weighed_beyond(seconds)))

    def _weighed_beyond(self, seconds: float) -> list[tuple[float, float]]:
        longest = ((_LEAST_SECONDS * _BUCKET_GROWTH**bucket, count) for bucket, count in self._counts.items())
        return sorted((known, count) for known, count in longest if known > seconds)


class RunTimes:
    """The run time model. The cost of `observe` and `predict` does not depend on the number of runs."""

    def __init__(self) -> None:
        #: by key: its run times, oldest first; the key that was updated last is the last one
        self._runs: OrderedDict[tuple[object, ...], array[float]] = OrderedDict()
        self._all = Spread()
        #: by key of the levels that are counted
        self._spreads: dict[tuple[object, ...], Spread] = {}
        self.life_tables = LifeTables()

    def __len__(self) -> int:
        return len(self._runs)

    def observe(self, features: Features, seconds: float) -> None:
        """Add a completed run."""
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"{seconds!r} is not a run time")
        self._all.add(seconds)
        if features.gpu_milli is not None:
            keys = table_keys(features.user, features.kind, features.nodes, features.gpu_milli)
            self.life_tables.add(keys, seconds)
        for number, level in enumerate(_LEVELS):
            key = level.key(features)
            if key is None:
                continue
            runs = self._runs.setdefault((number, *key), array("d"))
            runs.append(seconds)
            if len(runs) > KEPT_RUNS:
                del runs[0]
            self._runs.move_to_end((number, *key))
            if level.is_counted:
                self._spreads.setdefault((number, *key), Spread()).add(seconds)
        while len(self._runs) > MOST_KEYS:
            dropped, _ = self._runs.popitem(last=False)
            self._spreads.pop(dropped, None)

    def predict(self, features: Features, done_seconds: float = 0.0) -> Prediction | None:
        """The remaining run time of a job with `done_seconds` of saved work; None without similar runs."""
        for number, level in enumerate(_LEVELS):
            key = level.key(features)
            runs = () if key is None else self._runs.get((number, *key), ())
            # A job without saved work may also end at once.
            weighed = [run for run in _weighed(runs) if run[0] > done_seconds or done_seconds <= 0]
            if len(weighed) >= level.enough:
                weighed.sort()
                done = max(0.0, done_seconds)
                p50, p90, *own = _quantiles(weighed, (0.5, 0.9, *(_PARTS if level.is_named else ())))
                if not level.is_named:
                    own = self._counted_beyond((number, *(key or ())), done)
                return Prediction(
                    p50_seconds=p50 - done,
                    p90_seconds=p90 - done,
                    samples=len(weighed),
                    like=level.text(features),
                    spread=tuple(seconds - done for seconds in own or self._all.beyond(done)),
                )
        return self._beyond(done_seconds) if done_seconds > 0 else None

    def _counted_beyond(self, key: tuple[object, ...], seconds: float) -> list[float]:
        """Quantiles of the counted runs of a key that took longer; empty if there are too few."""
        spread = self._spreads.get(key)
        return [] if spread is None or not spread.is_enough else spread.beyond(seconds)

    def _beyond(self, done_seconds: float) -> Prediction | None:
        """The prediction for a job that ran longer than similar runs: from all runs that took as long."""
        left = tuple(seconds - done_seconds for seconds in self._all.beyond(done_seconds))
        if not left:
            return None
        return Prediction(
            p50_seconds=left[STEPS // 2],
            p90_seconds=left[STEPS * 9 // 10],
            samples=self._all.count_beyond(done_seconds),
            like="jobs that run as long",
            spread=left,
        )


def predicted(run_times: RunTimes, job: Job) -> Job:
    """The job with its prediction. To be called when the job is queued."""
    return replace(job, predicted=run_times.predict(_asked_by(job), job.saved_seconds))


def has_similar_runs(job: Job) -> bool:
    """Whether the job is predicted by runs of the same name."""
    known = job.predicted
    if known is None:
        return False
    asked = _asked_by(job)
    return any(level.is_named and level.key(asked) is not None and known.like == level.text(asked) for level in _LEVELS)


def life_table_keys(job: Job) -> tuple[TableKey, ...]:
    """The life tables of a job; none for an elastic job, whose run time changes with its size."""
    if job.elastic is not None:
        return ()
    return table_keys(job.user, job.kind, job.request.nodes, job.request.total_gpu_milli)


def learn(run_times: RunTimes, before: Job, after: Job) -> None:
    """Learn from an attempt that ended: `before` is the job with its allocation, `after` the job after the end.

    A job that failed or was stopped releases its GPUs as well: life tables count its end, predictions do not.
    """
    if not after.state.is_ended or before.started_at is None or before.allocation is None:
        return
    last = max(0.0, (after.ended_at or 0.0) - before.started_at)
    seconds = before.saved_seconds + before.ran_seconds + last
    if after.state is JobState.COMPLETED:
        run_times.observe(features_of_run(before, before.allocation), seconds)
    else:
        run_times.life_tables.add(life_table_keys(before), seconds)


def features_of_run(job: Job, allocation: Allocation) -> Features:
    return Features(
        user=job.user,
        name=job.name,
        kind=job.kind,
        nodes=len(allocation.grants),
        gpu_milli=allocation.total_gpu_milli,
        model=allocation.model or None,
    )


@lru_cache(maxsize=4096)
def name_pattern(name: str) -> str:
    """The common pattern of the names in a series: numbers, and parts that look like a hash, become `#`."""
    parts = _SEPARATOR.split(name)
    folded = ["#" if _NUMBER.fullmatch(part) or _HEX.fullmatch(part) else part for part in parts]
    # The number of a run often follows its name directly; a number further in front is part of the name.
    folded[-1] = _LAST_DIGITS.sub("#", folded[-1])
    return _FOLDED.sub("#", "".join(folded))


def _asked_by(job: Job) -> Features:
    request = job.request
    return Features(
        user=job.user,
        name=job.name,
        kind=job.kind,
        nodes=request.nodes,
        gpu_milli=request.total_gpu_milli if job.elastic is None else None,
        model=request.models[0] if len(request.models) == 1 else None,
    )


def _weighed(runs: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(runs, _WEIGHTS[KEPT_RUNS - len(runs) :], strict=True))


def _quantiles(weighed: Sequence[tuple[float, float]], parts: Sequence[float]) -> list[float]:
    """The weighted quantiles of the run times, which ascend."""
    total = math.fsum([weight for _, weight in weighed])
    reached = list(accumulate([weight for _, weight in weighed]))
    last = len(weighed) - 1
    return [weighed[min(bisect_left(reached, part * total), last)][0] for part in parts]


def _size_text(features: Features, model: str = "") -> str:
    if not features.gpu_milli:
        return "no GPU" if features.nodes == 1 else f"{counted(features.nodes, 'node')} without GPUs"
    each = features.gpu_milli // features.nodes
    gpus = f"{gpus_text(each)} {model + ' ' if model else ''}{'GPU' if each == WHOLE else 'GPUs'}"
    return gpus if features.nodes == 1 else f"{features.nodes} × {gpus}"


def _with_name(features: Features) -> tuple[object, ...] | None:
    """The key of a series of jobs by name; None for a name without letters: a mere number does not
    identify a series.
    """
    pattern = name_pattern(features.name)
    return (features.user, pattern, features.kind) if any(letter.isalpha() for letter in pattern) else None


def _with_size(features: Features) -> tuple[object, ...] | None:
    named = _with_name(features)
    return None if features.gpu_milli is None or named is None else (*named, features.nodes, features.gpu_milli)


def _with_model(features: Features) -> tuple[object, ...] | None:
    sized = _with_size(features)
    return None if features.model is None or sized is None else (*sized, features.model)


#: the most specific first
_LEVELS = (
    _Level(
        key=_with_model,
        text=lambda job: f"{job.user}'s {name_pattern(job.name)} on {_size_text(job, job.model or '')}",
        enough=ENOUGH,
        is_named=True,
    ),
    _Level(
        key=_with_size,
        text=lambda job: f"{job.user}'s {name_pattern(job.name)} on {_size_text(job)}",
        enough=ENOUGH,
        is_named=True,
    ),
    _Level(
        # Jobs that a user gives the same name are similar: one run is better than many runs of other users.
        key=_with_name,
        text=lambda job: f"{job.user}'s {name_pattern(job.name)} of any size",
        enough=1,
        is_named=True,
    ),
    _Level(
        key=lambda job: None if job.gpu_milli is None else (job.user, job.kind, job.nodes, job.gpu_milli),
        text=lambda job: f"{job.user}'s {job.kind} jobs on {_size_text(job)}",
        enough=ENOUGH,
        is_counted=True,
    ),
    _Level(
        key=lambda job: (job.user, job.kind),
        text=lambda job: f"{job.user}'s {job.kind} jobs",
        enough=ENOUGH,
    ),
    _Level(
        key=lambda job: None if job.gpu_milli is None else (job.kind, job.nodes, job.gpu_milli),
        text=lambda job: f"all {job.kind} jobs on {_size_text(job)}",
        enough=ENOUGH,
    ),
)

#: The weights of the kept runs, oldest first; the latest counts 1.
_WEIGHTS = tuple(0.5 ** ((KEPT_RUNS - 1 - place) / HALF_LIFE) for place in range(KEPT_RUNS))
