"""Compares the value of a row with its target.

Both are texts that people read: `p50 15.2 ms, p99 33.0 ms` and `p50 ≤ 12 ms, p99 ≤ 40 ms`, or `84 jobs/s` and
`≥ 300 jobs/s`. A target in × is compared with the ratio of the row. No verdict is better than a wrong one: texts that
cannot be compared have none.
"""

from __future__ import annotations

import re
from enum import StrEnum

from benchmarks.tables import Row

_NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
_TARGET = re.compile(rf"(?:(p\d+) )?([≤≥<>]) {_NUMBER}\s*([^\s,;(]*)")
_SECONDS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_BYTES = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


class Verdict(StrEnum):
    REACHED = "reached"
    MISSED = "missed"
    NONE = "–"


def verdict_of(row: Row) -> Verdict:
    """Missed if one part of the target is missed; none if a part cannot be compared."""
    parts = _TARGET.findall(row.target)
    if not parts:
        return Verdict.NONE
    results = [_is_reached(row, *part) for part in parts]
    if False in results:
        return Verdict.MISSED
    return Verdict.NONE if None in results else Verdict.REACHED


def figure_of(text: str, label: str = "") -> tuple[float, str] | None:
    """The first number of a text, or the one behind a label, with its unit; None if there is none."""
    found = re.search(rf"{label + ' ' if label else ''}{_NUMBER}\s*([^\s,;(]*)", text)
    return (_number(found[1]), found[2]) if found else None


def is_more_better(row: Row) -> bool | None:
    """Whether a greater value is a better one, by the target of the row."""
    parts = _TARGET.findall(row.target)
    return parts[0][1] in "≥>" if parts else None


def _is_reached(row: Row, label: str, sign: str, number: str, unit: str) -> bool | None:
    measured = _times(row.ratio) if unit == "×" else figure_of(row.value, label)
    if measured is None:
        return None
    value, limit = _comparable(*measured), _comparable(_number(number), unit)
    if value[1] != limit[1]:
        return None
    match sign:
        case "≤":
            return value[0] <= limit[0]
        case "<":
            return value[0] < limit[0]
        case "≥":
            return value[0] >= limit[0]
        case _:
            return value[0] > limit[0]


def _times(ratio: str) -> tuple[float, str] | None:
    found = re.search(rf"{_NUMBER}\s*×", ratio)
    return (_number(found[1]), "×") if found else None


def _comparable(number: float, unit: str) -> tuple[float, str]:
    if unit in _SECONDS:
        return number * _SECONDS[unit], "s"
    if unit in _BYTES:
        return number * _BYTES[unit], "bytes"
    # "/s" and "jobs/s" of one row are the same.
    return (number, "/s") if unit.endswith("/s") else (number, unit)


def _number(text: str) -> float:
    return float(text.replace(",", ""))
