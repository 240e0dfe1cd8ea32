"""How finely the past is kept, and which level answers which part of a question.

Three levels: readings as they were taken, then per minute, then per hour. Each keeps its chunks by windows of time;
what is older than a level's floor is not there any more.
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
        """How much time a chunk of it holds."""
        return _WINDOWS_MS[self]

    @property
    def block(self) -> int:
        """How many subjects a chunk of it holds, by their numbers."""
        return _BLOCKS[self]


_STEPS_MS = {Level.RAW: 1, Level.MINUTE: 60_000, Level.HOUR: HOUR_MS}
#: All whole hours, so that floors of different levels never cut a step of another. A window of the hours is four days:
#: rewritten every hour, and still few for a question about a month.
_WINDOWS_MS = {Level.RAW: HOUR_MS, Level.MINUTE: HOUR_MS, Level.HOUR: 96 * HOUR_MS}
#: Few, because a question about one GPU unpacks all of a block; more where an hour of a subject is a single value.
_BLOCKS = {Level.RAW: 16, Level.MINUTE: 16, Level.HOUR: 64}
#: Readings leave the head by this window.
COMPACTION_MS = HOUR_MS


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """From `since` on and before `until`, answered by one level."""

    level: Level
    since: int
    until: int


def floor_to(moment: int, step: int) -> int:
    return moment // step * step


def ceil_to(moment: int, step: int) -> int:
    return -(-moment // step) * step


def choose(since: int, until: int, step: int, floors: Mapping[Level, int]) -> list[Span]:
    """Who answers which part of a span of compacted time, in order, without a gap and without anything twice.

    The coarsest level that fits the step answers, finer ones the broken steps at both ends. Where no level is fine
    enough the finest that is left answers, with every step of its own that begins or lasts inside the span.
    """
    cuts = sorted({since, until, *(floor for floor in floors.values() if since < floor < until)})
    return [
        span
        for begin, end in pairwise(cuts)
        for span in _within(begin, end, step, [level for level in Level if floors[level] <= begin])
    ]


def _within(since: int, until: int, step: int, levels: list[Level]) -> list[Span]:
    """`levels`: those that have all of it."""
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
