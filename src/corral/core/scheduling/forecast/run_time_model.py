"""How long a job will run, learned from the runs that have completed.

Runs are remembered under keys from specific to general: this user's jobs of this name with these GPUs of this model,
and so on to all jobs of this kind and size. A prediction comes from the most specific key that has seen enough, and
says which one it was; if none has, there is no prediction. Of each key only the latest runs are kept, and of the keys
only those that were taught last, so that memory is bounded whatever people do.

Only completed runs teach. One that was stopped, failed or ran out of time would have gone on for nobody knows how long:
to count it would make predictions too short. What such a job has saved counts for its own next attempt
(`done_seconds`): of the runs like it only those that took longer still say something.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Allocation, Job, JobKind, JobState, Prediction

#: Runs that are kept per key, and after how many more of them one counts half.
KEPT_RUNS = 32
HALF_LIFE = 8
#: Keys that are kept; each run teaches one of every level.
MOST_KEYS = 20_000
#: From so many runs on a key is believed, where the next more general one could say something, too.
ENOUGH = 3
#: A spread is told in so many steps, from buckets of so little difference. When so many runs are counted, all of them
#: count half from then on.
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
    """What jobs are compared by. None where it is not known yet: what an elastic job, or one that takes any model, will
    get."""

    user: str
    name: str
    kind: JobKind
    nodes: int = 1
    #: over all nodes
    gpu_milli: int | None = None
    model: str | None = None


class _Level(NamedTuple):
    """One way to say that jobs are alike."""

    key: Callable[[Features], tuple[object, ...] | None]
    words: Callable[[Features], str]
    enough: int
    #: whether they have a name in common: who has not is as different from its like as from all others
    is_named: bool = False


class Spread:
    """How long all runs took, counted in narrow buckets. Older ones count for less as more come."""

    def __init__(self) -> None:
        self._counts: dict[int, float] = {}
        self._total = 0.0

    def add(self, seconds: float) -> None:
        bucket = math.ceil(math.log(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS) / math.log(_BUCKET_GROWTH))
        self._counts[bucket] = self._counts.get(bucket, 0.0) + 1.0
        self._total += 1.0
        if self._total >= _MOST_COUNTED:
            self._counts = {name: count / 2 for name, count in self._counts.items() if count > _LEAST_COUNTED}
            self._total = math.fsum(self._counts.values())

    def beyond(self, seconds: float) -> list[float]:
        """How long the runs took that took longer; nothing if too few did."""
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
    """What is known of run times. `observe` and `predict` cost the same, however much has been seen."""

    def __init__(self) -> None:
        #: the run times of each key, oldest first; the key that was taught last is the last one
        self._runs: OrderedDict[tuple[object, ...], array[float]] = OrderedDict()
        self._all = Spread()

    def __len__(self) -> int:
        return len(self._runs)

    def observe(self, features: Features, seconds: float) -> None:
        """A run has completed after so long."""
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"{seconds!r} is not a run time")
        self._all.add(seconds)
        for number, level in enumerate(_LEVELS):
            key = level.key(features)
            if key is None:
                continue
            runs = self._runs.setdefault((number, *key), array("d"))
            runs.append(seconds)
            if len(runs) > KEPT_RUNS:
                del runs[0]
            self._runs.move_to_end((number, *key))
        while len(self._runs) > MOST_KEYS:
            self._runs.popitem(last=False)

    def predict(self, features: Features, done_seconds: float = 0.0) -> Prediction | None:
        """How much longer a job runs that has `done_seconds` behind it; None if nothing is known of such jobs."""
        for number, level in enumerate(_LEVELS):
            key = level.key(features)
            runs = () if key is None else self._runs.get((number, *key), ())
            # A job that has nothing behind it can also end at once.
            weighed = [run for run in _weighed(runs) if run[0] > done_seconds or done_seconds <= 0]
            if len(weighed) >= level.enough:
                weighed.sort()
                done = max(0.0, done_seconds)
                own = _quantiles(weighed, _PARTS) if level.is_named else []
                return Prediction(
                    p50_seconds=_quantile(weighed, 0.5) - done,
                    p90_seconds=_quantile(weighed, 0.9) - done,
                    samples=len(weighed),
                    like=level.words(features),
                    spread=tuple(seconds - done for seconds in own or self._all.beyond(done)),
                )
        return self._beyond(done_seconds) if done_seconds > 0 else None

    def _beyond(self, done_seconds: float) -> Prediction | None:
        """What is left of a job that has outlived its like: as of all others that took as long."""
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
    """The job with what is known now of how long it will run. For whoever queues it."""
    return replace(job, predicted=run_times.predict(_asked_by(job), job.saved_seconds))


def learn(run_times: RunTimes, before: Job, after: Job) -> None:
    """A job's attempt is over: `before` held its allocation, `after` is what has become of it."""
    if after.state is not JobState.COMPLETED or before.started_at is None or before.allocation is None:
        return
    last = max(0.0, (after.ended_at or 0.0) - before.started_at)
    run_times.observe(features_of_run(before, before.allocation), before.saved_seconds + before.ran_seconds + last)


def features_of_run(job: Job, allocation: Allocation) -> Features:
    return Features(
        user=job.user,
        name=job.name,
        kind=job.kind,
        nodes=len(allocation.grants),
        gpu_milli=allocation.total_gpu_milli,
        model=allocation.model or None,
    )


def name_pattern(name: str) -> str:
    """What the names of one series have in common: numbers, and words that look like a hash, become `#`."""
    words = _SEPARATOR.split(name)
    folded = ["#" if _NUMBER.fullmatch(word) or _HEX.fullmatch(word) else word for word in words]
    # The number of a run is often glued to its name; one further in front is rather a part of the name.
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


def _quantile(weighed: Sequence[tuple[float, float]], part: float) -> float:
    """The smallest run time that this part of the weight does not exceed."""
    return _quantiles(weighed, (part,))[0]


def _quantiles(weighed: Sequence[tuple[float, float]], parts: Sequence[float]) -> list[float]:
    """The same for ascending parts at once."""
    total = math.fsum(weight for _, weight in weighed)
    found = list[float]()
    reached = 0.0
    for seconds, weight in weighed:
        reached += weight
        while len(found) < len(parts) and reached >= parts[len(found)] * total:
            found.append(seconds)
    return [*found, *(weighed[-1][0] for _ in parts[len(found) :])]


def _size_words(features: Features, model: str = "") -> str:
    if not features.gpu_milli:
        return "no GPU" if features.nodes == 1 else f"{features.nodes} nodes without GPUs"
    each = features.gpu_milli // features.nodes
    gpus = f"{gpus_text(each)} {model + ' ' if model else ''}{'GPU' if each == WHOLE else 'GPUs'}"
    return gpus if features.nodes == 1 else f"{features.nodes} × {gpus}"


def _with_name(one: Features) -> tuple[object, ...] | None:
    """A number is no name: what is numbered through may be anything."""
    pattern = name_pattern(one.name)
    return (one.user, pattern, one.kind) if any(letter.isalpha() for letter in pattern) else None


def _with_size(one: Features) -> tuple[object, ...] | None:
    named = _with_name(one)
    return None if one.gpu_milli is None or named is None else (*named, one.nodes, one.gpu_milli)


def _with_model(one: Features) -> tuple[object, ...] | None:
    sized = _with_size(one)
    return None if one.model is None or sized is None else (*sized, one.model)


#: the most specific first
_LEVELS = (
    _Level(
        key=_with_model,
        words=lambda one: f"{one.user}'s {name_pattern(one.name)} on {_size_words(one, one.model or '')}",
        enough=ENOUGH,
        is_named=True,
    ),
    _Level(
        key=_with_size,
        words=lambda one: f"{one.user}'s {name_pattern(one.name)} on {_size_words(one)}",
        enough=ENOUGH,
        is_named=True,
    ),
    _Level(
        # What a user calls alike is alike: here one run says more than any number of others' runs.
        key=_with_name,
        words=lambda one: f"{one.user}'s {name_pattern(one.name)} of any size",
        enough=1,
        is_named=True,
    ),
    _Level(
        key=lambda one: None if one.gpu_milli is None else (one.user, one.kind, one.nodes, one.gpu_milli),
        words=lambda one: f"{one.user}'s {one.kind} jobs on {_size_words(one)}",
        enough=ENOUGH,
    ),
    _Level(
        key=lambda one: (one.user, one.kind),
        words=lambda one: f"{one.user}'s {one.kind} jobs",
        enough=ENOUGH,
    ),
    _Level(
        key=lambda one: None if one.gpu_milli is None else (one.kind, one.nodes, one.gpu_milli),
        words=lambda one: f"all {one.kind} jobs on {_size_words(one)}",
        enough=ENOUGH,
    ),
)

#: of the kept runs, oldest first; the latest counts 1
_WEIGHTS = tuple(0.5 ** ((KEPT_RUNS - 1 - place) / HALF_LIFE) for place in range(KEPT_RUNS))
