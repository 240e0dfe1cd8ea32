"""How good estimated starts have been, and what follows from that for the next ones.

A forecast knows who waits, who runs and what is predicted of them. It does not know who comes later and goes first,
what is stopped or fails, nor how wrong predictions are as a whole. What became of earlier estimates knows all that: by
queue and by how far ahead they looked, the next ones are stretched as those would have had to be; a p50 may also come
nearer, a p90 never does.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HOUR = 3600.0
#: How far ahead an estimate looks: up to so many seconds, and in words.
HORIZONS: tuple[tuple[float, str], ...] = (
    (600.0, "< 10 min"),
    (HOUR, "< 1 h"),
    (6 * HOUR, "< 6 h"),
    (24 * HOUR, "< 1 day"),
    (7 * 24 * HOUR, "< 1 week"),
    (math.inf, "≥ 1 week"),
)
_BOUNDS = tuple(most for most, _ in HORIZONS[:-1])
#: Outcomes that are looked at, and how many of them are believed.
KEPT = 200
ENOUGH = 10
#: Nobody is told in seconds: where both are next to nothing, their ratio says nothing.
GRAIN_SECONDS = 60.0
LEAST_FACTOR, MOST_FACTOR = 0.25, 30.0
#: What was right too often is not made tighter: outcomes come late, and those of long waits last.
LEAST_P90_FACTOR = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PastEstimate:
    """An estimate, and what became of it."""

    job_id: str
    #: the attempt that was waited for
    attempt: int
    queue: str
    user: str = ""
    made_at: float
    p50: float
    p90: float
    #: as the forecast had it, before earlier outcomes were looked at
    raw_p50: float
    raw_p90: float
    #: None while it waits
    started_at: float | None = None

    @property
    def wait_seconds(self) -> float | None:
        return None if self.started_at is None else max(0.0, self.started_at - self.made_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """What estimates are multiplied with, and from how many outcomes that is known."""

    p50: float = 1.0
    p90: float = 1.0
    outcomes: int = 0


#: Until outcomes say how wrong they are, the latest rollout is not late enough.
UNTRIED = Stretch(p90=1.3)
#: Stands for all horizons together.
_EVERY = -1


class Calibration:
    """By queue and horizon; where that has too little to say, all queues together say it, then all horizons."""

    def __init__(self, stretches: dict[tuple[str, int], Stretch]) -> None:
        self._stretches = stretches

    def stretch(self, queue: str, seconds: float) -> Stretch:
        if not self._stretches:
            return UNTRIED
        horizon = horizon_of(seconds)
        known = (self._stretches.get(key) for key in ((queue, horizon), ("", horizon), ("", _EVERY)))
        return next((stretch for stretch in known if stretch is not None), UNTRIED)


NOTHING_KNOWN = Calibration({})


def horizon_of(seconds: float) -> int:
    return bisect_right(_BOUNDS, seconds)


def calibrate(told: Iterable[PastEstimate], now: float) -> Calibration:
    """From what became of estimates, the latest outcomes. One that still waits counts from when it is late: else those
    that wait long would be missed."""
    groups: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    known = [(now if one.started_at is None else one.started_at, one) for one in told]
    known = [(until, one) for until, one in known if one.started_at is not None or until > one.raw_p90]
    for until, one in sorted(known, key=lambda item: (item[0], item[1].job_id, item[1].made_at)):
        waited = max(0.0, until - one.made_at)
        half, most = one.raw_p50 - one.made_at, one.raw_p90 - one.made_at
        ratios = (_ratio(waited, half), _ratio(waited, most))
        horizon = horizon_of(half)
        for key in ((one.queue, horizon), ("", horizon), ("", _EVERY)):
            groups[key].append(ratios)
    return Calibration({key: _stretch(ratios[-KEPT:]) for key, ratios in groups.items() if len(ratios) >= ENOUGH})


def stretched(seconds: float, factor: float) -> float:
    """A wait after earlier outcomes were looked at; who starts now starts now."""
    return seconds if seconds <= 0 else max(0.0, (seconds + GRAIN_SECONDS) * factor - GRAIN_SECONDS)


def _ratio(waited: float, estimated: float) -> float:
    return (waited + GRAIN_SECONDS) / (max(0.0, estimated) + GRAIN_SECONDS)


def _stretch(ratios: Sequence[tuple[float, float]]) -> Stretch:
    return Stretch(
        p50=_bounded(_quantile([half for half, _ in ratios], 0.5)),
        p90=max(LEAST_P90_FACTOR, _bounded(_quantile([most for _, most in ratios], 0.9))),
        outcomes=len(ratios),
    )


def _bounded(factor: float) -> float:
    return min(MOST_FACTOR, max(LEAST_FACTOR, factor))


def _quantile(values: Sequence[float], part: float) -> float:
    """What the next one does not exceed with this chance, if it is like these."""
    place = math.ceil((len(values) + 1) * part) - 1
    return sorted(values)[min(place, len(values) - 1)]


# ---------------------------------------------------------------- for people


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """What became of estimates; None where nothing has."""

    estimates: int
    started: int
    before_p50: float | None = None
    before_p90: float | None = None
    #: between when they started and the half, whichever was first
    median_error_seconds: float | None = None


def accuracy_of(told: Iterable[PastEstimate], now: float) -> Accuracy:
    """Those that wait beyond their nine tenths are counted as not before it: they are known to be late."""
    rows = list(told)
    started = [one for one in rows if one.started_at is not None]
    judged = [one for one in rows if one.started_at is not None or now > one.p90]
    if not judged:
        return Accuracy(estimates=len(rows), started=0)
    errors = [abs((now if one.started_at is None else one.started_at) - one.p50) for one in judged]
    return Accuracy(
        estimates=len(rows),
        started=len(started),
        before_p50=sum(_is_by(one, one.p50) for one in judged) / len(judged),
        before_p90=sum(_is_by(one, one.p90) for one in judged) / len(judged),
        median_error_seconds=statistics.median(errors),
    )


def by_horizon(told: Iterable[PastEstimate], now: float) -> list[tuple[str, Accuracy]]:
    """By how far ahead they looked; horizons without any are left out."""
    groups: dict[int, list[PastEstimate]] = defaultdict(list)
    for one in told:
        groups[horizon_of(one.p50 - one.made_at)].append(one)
    return [(HORIZONS[number][1], accuracy_of(groups[number], now)) for number in sorted(groups)]


def _is_by(one: PastEstimate, moment: float) -> bool:
    # A second is nothing: the moment of a start is that of the cycle that found it.
    return one.started_at is not None and one.started_at <= moment + 1.0
