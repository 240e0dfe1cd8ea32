"""The accuracy of estimated starts, and the correction of the next estimates that follows from it.

A forecast knows the waiting and running jobs and their predictions. It does not know which jobs arrive later and go
first, which jobs are stopped or fail, and how wrong the predictions are on the whole. The outcomes of earlier estimates
contain all that: by queue and by horizon (how far ahead the estimate was), the next estimates are scaled by the error
of the earlier ones; a p50 may become earlier, a p90 never does.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HOUR = 3600.0
#: Horizons: an estimate is up to so many seconds ahead; with the label.
HORIZONS: tuple[tuple[float, str], ...] = (
    (600.0, "< 10 min"),
    (HOUR, "< 1 h"),
    (6 * HOUR, "< 6 h"),
    (24 * HOUR, "< 1 day"),
    (7 * 24 * HOUR, "< 1 week"),
    (math.inf, "≥ 1 week"),
)
_BOUNDS = tuple(most for most, _ in HORIZONS[:-1])
#: How many of the latest outcomes count, and how many are needed.
KEPT = 200
ENOUGH = 10
#: Estimates are not exact to the second: the ratio of two tiny waits means nothing.
GRAIN_SECONDS = 60.0
LEAST_FACTOR, MOST_FACTOR = 0.25, 30.0
#: With so many outcomes the factor of a p50 counts half (as a logarithm). Outcomes that come together are wrong
#: together, so that a few of them say little about the middle.
HALF_TRUSTED = 50
#: A p90 that was right too often is not made tighter: outcomes arrive late, and those of long waits last.
LEAST_P90_FACTOR = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PastEstimate:
    """An estimate that was shown earlier, and its outcome."""

    job_id: str
    #: the number of the attempt that the job waited for
    attempt: int
    queue: str
    user: str = ""
    made_at: float
    p50: float
    p90: float
    #: the estimate before the correction by earlier outcomes
    raw_p50: float
    raw_p90: float
    #: None while the job waits
    started_at: float | None = None

    @property
    def wait_seconds(self) -> float | None:
        return None if self.started_at is None else max(0.0, self.started_at - self.made_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """The factors of the correction, and the number of outcomes that they come from."""

    p50: float = 1.0
    p90: float = 1.0
    outcomes: int = 0


#: Without outcomes: even the latest rollout is usually too early.
UNTRIED = Stretch(p90=1.3)
#: Stands for all horizons together.
_EVERY = -1


class Calibration:
    """Corrections by queue and horizon; with too few outcomes those of all queues count, then of all horizons."""

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


def calibrate(estimates: Iterable[PastEstimate], now: float) -> Calibration:
    """The corrections from the latest outcomes. A job that still waits counts as soon as it is late: otherwise long
    waits would be missed."""
    groups: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    known = [(now if estimate.started_at is None else estimate.started_at, estimate) for estimate in estimates]
    known = [
        (until, estimate) for until, estimate in known if estimate.started_at is not None or until > estimate.raw_p90
    ]
    for until, estimate in sorted(known, key=lambda item: (item[0], item[1].job_id, item[1].made_at)):
        waited = max(0.0, until - estimate.made_at)
        half, most = estimate.raw_p50 - estimate.made_at, estimate.raw_p90 - estimate.made_at
        ratios = (_ratio(waited, half), _ratio(waited, most))
        horizon = horizon_of(half)
        for key in ((estimate.queue, horizon), ("", horizon), ("", _EVERY)):
            groups[key].append(ratios)
    return Calibration({key: _stretch(ratios[-KEPT:]) for key, ratios in groups.items() if len(ratios) >= ENOUGH})


def stretched(seconds: float, factor: float) -> float:
    """A wait after the correction; a start now stays a start now."""
    return seconds if seconds <= 0 else max(0.0, (seconds + GRAIN_SECONDS) * factor - GRAIN_SECONDS)


def _ratio(waited: float, estimated: float) -> float:
    return (waited + GRAIN_SECONDS) / (max(0.0, estimated) + GRAIN_SECONDS)


def _stretch(ratios: Sequence[tuple[float, float]]) -> Stretch:
    trust = len(ratios) / (len(ratios) + HALF_TRUSTED)
    return Stretch(
        p50=_bounded(_quantile([half for half, _ in ratios], 0.5)) ** trust,
        p90=max(LEAST_P90_FACTOR, _bounded(_quantile([most for _, most in ratios], 0.9))),
        outcomes=len(ratios),
    )


def _bounded(factor: float) -> float:
    return min(MOST_FACTOR, max(LEAST_FACTOR, factor))


def _quantile(values: Sequence[float], part: float) -> float:
    """The value that the next one does not exceed with this probability, if it is like these."""
    place = math.ceil((len(values) + 1) * part) - 1
    return sorted(values)[min(place, len(values) - 1)]


# ---------------------------------------------------------------- for users


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """The accuracy of estimates; None without outcomes."""

    estimates: int
    started: int
    before_p50: float | None = None
    before_p90: float | None = None
    #: between the actual start and the p50, in either direction
    median_error_seconds: float | None = None


def accuracy_of(estimates: Iterable[PastEstimate], now: float) -> Accuracy:
    """Jobs that wait beyond their p90 count as late."""
    rows = list(estimates)
    started = [row for row in rows if row.started_at is not None]
    judged = [row for row in rows if row.started_at is not None or now > row.p90]
    if not judged:
        return Accuracy(estimates=len(rows), started=0)
    errors = [abs((now if estimate.started_at is None else estimate.started_at) - estimate.p50) for estimate in judged]
    return Accuracy(
        estimates=len(rows),
        started=len(started),
        before_p50=sum(_is_by(estimate, estimate.p50) for estimate in judged) / len(judged),
        before_p90=sum(_is_by(estimate, estimate.p90) for estimate in judged) / len(judged),
        median_error_seconds=statistics.median(errors),
    )


def by_horizon(estimates: Iterable[PastEstimate], now: float) -> list[tuple[str, Accuracy]]:
    """The accuracy by horizon; horizons without estimates are left out."""
    groups: dict[int, list[PastEstimate]] = defaultdict(list)
    for estimate in estimates:
        groups[horizon_of(estimate.p50 - estimate.made_at)].append(estimate)
    return [(HORIZONS[number][1], accuracy_of(groups[number], now)) for number in sorted(groups)]


def _is_by(estimate: PastEstimate, moment: float) -> bool:
    # A second does not matter: the time of a start is that of its cycle.
    return estimate.started_at is not None and estimate.started_at <= moment + 1.0
