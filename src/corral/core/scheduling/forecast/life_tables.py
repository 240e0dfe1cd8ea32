"""Life tables: how many jobs end after which run time, for the forecast of jobs of which no run of the same name is
known.

Completed runs alone say too little about such jobs: those that complete first are the short ones, and half of all runs
end within minutes while most of the GPU time belongs to a few long ones. A life table counts, for each stretch of run
time, how many jobs ended in it and how long jobs were watched in it. Jobs that still run count too, with what they have
run so far. Tables go from general to specific: all jobs, those of a user, those of the user with the same kind and
size. The less a table knows of a stretch, the more the general one counts.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from corral.core.model import JobKind

#: The stretches of run time: the first ends after so many seconds, each further one is twice as long as all before it.
FIRST_SECONDS = 60.0
STRETCHES = 18
_EDGES: tuple[float, ...] = (0.0, *(FIRST_SECONDS * 2.0**number for number in range(STRETCHES)))
_WIDTHS = tuple(after - before for before, after in pairwise(_EDGES))
#: After how many newer ends of a table an end counts half: of all jobs, of a user's, of a user's with the same kind and
#: size. People submit many similar jobs, then others.
HALF_LIVES = (2000, 400, 100)
_FADING: dict[int, float] = {size: 0.5 ** (1 / ends) for size, ends in zip((0, 1, 4), HALF_LIVES, strict=True)}
#: So many ends of a stretch are worth as much as what the general table says of it.
PRIOR_ENDS = 2.0
#: Without any table, the chance to end within the next second is this part of the run time so far: seven of ten jobs
#: that ran for an hour run for two.
_PRIOR = 0.5
#: How many jobs must have ended before life tables are used.
ENOUGH = 16
#: How many tables are kept.
MOST_TABLES = 5000
#: An end later than this is not looked for: a level of 1 has no run time.
_LAST_LEVEL = 1.0 - 1e-9

#: No user: of all jobs. A user: of the user's. With kind, nodes and thousandths of GPUs: of the user's with this size.
TableKey = tuple[()] | tuple[str] | tuple[str, JobKind, int, int]


class LifeTable(NamedTuple):
    """By stretch of run time: the jobs that ended in it, and the seconds that jobs were watched in it."""

    ends: tuple[float, ...]
    seconds: tuple[float, ...]


EMPTY = LifeTable((0.0,) * (STRETCHES + 1), (0.0,) * (STRETCHES + 1))
Tables = Mapping[TableKey, LifeTable]
NO_TABLES: Tables = {}


class LifeTables:
    """The tables of the jobs that have ended. Tables are immutable: a copy costs as much as there are keys."""

    def __init__(self) -> None:
        #: the table that changed last is the last one
        self._tables: OrderedDict[TableKey, LifeTable] = OrderedDict()

    def add(self, keys: Iterable[TableKey], seconds: float) -> None:
        """A job of these tables ended after this run time."""
        for key in keys:
            self._tables[key] = _with_end(self._tables.get(key, EMPTY), seconds, _FADING[len(key)])
            self._tables.move_to_end(key)
        while len(self._tables) > MOST_TABLES:
            self._tables.popitem(last=False)

    def copy(self) -> Tables:
        return dict(self._tables)


def table_keys(user: str, kind: JobKind, nodes: int, gpu_milli: int) -> tuple[TableKey, ...]:
    """The tables of a job, from general to specific."""
    return (), (user,), (user, kind, nodes, gpu_milli)


class Hazard:
    """The distribution of a run time by its rate: the chance to end within the next second, by stretch."""

    __slots__ = ("_rates", "_sums")

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = rates
        #: the rates summed up until the beginning of each stretch
        self._sums = tuple(accumulate((rate * width for rate, width in zip(rates, _WIDTHS, strict=False)), initial=0.0))

    @property
    def rates(self) -> Sequence[float]:
        return self._rates

    def end(self, ran: float, level: float) -> float:
        """The run time that a job which has run for `ran` seconds exceeds with the probability 1 - `level`."""
        stretch = _stretch(ran)
        reached = self._sums[stretch] + self._rates[stretch] * (ran - _EDGES[stretch])
        reached -= math.log1p(-min(level, _LAST_LEVEL))
        stretch = bisect_right(self._sums, reached) - 1
        return max(ran, _EDGES[stretch] + (reached - self._sums[stretch]) / self._rates[stretch])


class Hazards:
    """The distributions at one moment, from the tables and the jobs that run."""

    def __init__(self, tables: Tables, running: Iterable[tuple[tuple[TableKey, ...], float]]) -> None:
        self._tables = tables
        self._running: dict[TableKey, list[float]] = {}
        for keys, seconds in running:
            for key in keys:
                self._running.setdefault(key, []).append(seconds)
        self._known: dict[TableKey, Hazard] = {}

    def of(self, keys: Sequence[TableKey]) -> Hazard:
        """For a job of these tables, from general to specific."""
        found = _WITHOUT_TABLES
        for key in keys:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._combined(key, found)
            found = known
        return found

    def _combined(self, key: TableKey, general: Hazard) -> Hazard:
        table = self._tables.get(key)
        running = self._running.get(key)
        if table is None and running is None:
            return general
        ends, seconds = table or EMPTY
        watched = list(seconds)
        for ran in running or ():
            _watch(watched, ran)
        return Hazard(
            [
                (ended + PRIOR_ENDS) / (seen + PRIOR_ENDS / rate)
                for ended, seen, rate in zip(ends, watched, general.rates, strict=True)
            ]
        )


def is_enough(tables: Tables) -> bool:
    table = tables.get(())
    return table is not None and math.fsum(table.ends) >= ENOUGH


def _with_end(table: LifeTable, seconds: float, fading: float) -> LifeTable:
    ends = [count * fading for count in table.ends]
    watched = [count * fading for count in table.seconds]
    ends[_stretch(seconds)] += 1.0
    _watch(watched, seconds)
    return LifeTable(tuple(ends), tuple(watched))


def _watch(watched: list[float], seconds: float) -> None:
    last = _stretch(seconds)
    for stretch in range(last):
        watched[stretch] += _WIDTHS[stretch]
    watched[last] += seconds - _EDGES[last]


def _stretch(seconds: float) -> int:
    return bisect_right(_EDGES, seconds) - 1


_WITHOUT_TABLES = Hazard([_PRIOR / (1.5 * max(edge, FIRST_SECONDS / 3)) for edge in _EDGES])
