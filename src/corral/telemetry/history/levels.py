"""The resolution of the history, and which level answers which part of a query.

There are three levels: raw readings, per minute, per hour. Each stores its chunks by windows of time; data older than a
level's floor has been removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

HOUR_MS = 3_600_000


class Level(IntEnum):
    RAW = 0
    MINUTE = 1
    HOUR = 2

    @property
    def step_ms(self) -> int:
        return _STEPS_MS[self]

    @property
    def window_ms(self) -> int:
        """The time that one chunk holds."""
        return _WINDOWS_MS[self]

    @property
    def block(self) -> int:
        """The number of subjects that one chunk holds, by their ids."""
        return _BLOCKS[self]


_STEPS_MS = {Level.RAW: 1, Level.MINUTE: 60_000, Level.HOUR: HOUR_MS}
#: All whole hours, so that floors of different levels never cut a step of another level. A window of the hour level is
#: four days: rewritten every hour, and still few for a query about a month.
_WINDOWS_MS = {Level.RAW: HOUR_MS, Level.MINUTE: HOUR_MS, Level.HOUR: 96 * HOUR_MS}
#: Few, because a query about one GPU unpacks all of a block; more where an hour of a subject is a single value.
_BLOCKS = {Level.RAW: 16, Level.MINUTE: 16, Level.HOUR: 64}
#: Readings are moved out of the head by this window.
COMPACTION_MS = HOUR_MS


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The time from `since` on and before `until`, answered by one level."""

    level: Level
    since: int
    until: int


def floor_to(moment: int, step: int) -> int:
    return moment // step * step


def ceil_to(moment: int, step: int) -> int:
    return -(-moment // step) * step


def choose(since: int, until: int, step: int, floors: Mapping[Level, int]) -> list[Span]:
    """The level for each part of a span of compacted time, in order, without gaps or overlaps.

    The coarsest level that fits the step answers, finer levels answer the partial steps at both ends. If no level is
    fine enough, the finest remaining one answers, with every step of its own that begins or continues inside the span.
    """
    cuts = sorted({since, until, *(floor for floor in floors.values() if since < floor < until)})
    return [
        span
        for begin, end in pairwise(cuts)
        for span in _within(begin, end, step, [level for level in Level if floors[level] <= begin])
    ]


def _within(since: int, until: int, step: int, levels: list[Level]) -> list[Span]:
    """`levels`: those that cover all of it."""
    if since >= until or not levels:
        return []
    fitting = [level for level in levels if step % level.step_ms == 0]
    level = fitting[-1] if fitting else levels[0]
    first, last = ceil_to(since, level.step_ms), floor_to(until, level.step_ms)
    finer = [other for other in levels if other < level]
    if not finer:
        return [Span(level=level, since=floor_to(since, level.step_ms), until=until)]
    if first >= last:
        return _within(since, until, step, finer)
    return [
        *_within(since, first, step, finer),
        Span(level=level, since=first, until=last),
        *_within(last, until, step, finer),
    ]
