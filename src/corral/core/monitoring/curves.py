"""Curves: numbers that a program reports per step. Values, merging and thinning; reading files is done elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

MOST_NAME_LETTERS = 200
#: the end of the year 9999
_LAST_SECOND = 253_402_300_799.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    step: int
    #: seconds since the epoch
    at: float
    #: None if the program reported a value that is not finite
    value: float | None


@dataclass(frozen=True, slots=True)
class Reported:
    """One number of one step."""

    name: str
    point: CurvePoint


def parse_line(line: bytes) -> Iterator[Reported]:
    """The numbers in a line that `corral.checkpoint.log` wrote. Other lines have none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    step, at, values = found.get("step"), found.get("at"), found.get("values")
    if not _is_whole(step) or not _is_number(at) or not isinstance(values, dict):
        return
    at = _moment(float(at))
    for name, value in values.items():
        if 0 < len(name) <= MOST_NAME_LETTERS and (value is None or _is_number(value)):
            yield Reported(name, CurvePoint(step, at, None if value is None else _finite(float(value))))


def point_of(step: int, at: float, value: float) -> CurvePoint:
    return CurvePoint(step, _moment(at), _finite(value))


def thinned(points: Sequence[CurvePoint], most: int) -> list[CurvePoint]:
    """Returns at most about `most` points of the same shape: the lowest and the highest of each stretch, so that no
    peak is lost, and both ends.
    """
    if len(points) <= most:
        return list(points)
    kept = [points[0]]
    stretches = max(1, (most - 2) // 2)
    inner = points[1:-1]
    for number in range(stretches):
        stretch = inner[number * len(inner) // stretches : (number + 1) * len(inner) // stretches]
        if not stretch:
            continue
        low = min(stretch, key=_low)
        high = max(stretch, key=_high)
        kept.extend(sorted({low.step: low, high.step: high}.values(), key=lambda point: point.step))
    kept.append(points[-1])
    return kept


def _low(point: CurvePoint) -> float:
    return math.inf if point.value is None else point.value


def _high(point: CurvePoint) -> float:
    return -math.inf if point.value is None else point.value


def _moment(at: float) -> float:
    """Returns the time, or 0.0 if no calendar has it: clocks and programs can be wrong."""
    return at if 0 <= at <= _LAST_SECOND else 0.0


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
