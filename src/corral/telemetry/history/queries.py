"""Answers queries: merges the parts that each level and the head have."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator

import numpy as np

from corral.control.ports import Point
from corral.telemetry.history.columns import Columns, joined
from corral.telemetry.history.compaction import read_chunks, read_floors
from corral.telemetry.history.head import read_head
from corral.telemetry.history.levels import Level, choose
from corral.telemetry.history.precision import Ints

_FILL = tuple(getattr(Point, name).__set__ for name in ("at", "mean", "least", "most", "count"))


def gather(
    connection: sqlite3.Connection, metric: int, subjects: Ints | None, since: int, until: int, step: int
) -> Columns:
    """One column per step (or per step of the finest remaining level, if that is longer)."""
    return joined(
        part.summed(max(step, level.step_ms))
        for level, part in _parts(connection, metric, subjects, since, until, step)
    )


def points(columns: Columns, row: int, per_unit: float) -> list[Point]:
    there = columns.counts[row] > 0
    counts = columns.counts[row][there]
    fields = (
        columns.times[there] / 1000,
        columns.totals[row][there] / counts / per_unit,
        columns.least[row][there] / per_unit,
        columns.most[row][there] / per_unit,
        counts,
    )
    # The same as the constructor of a frozen class, four times as fast: a day of raw readings has 17,000 points.
    found = [Point.__new__(Point) for _ in range(len(counts))]
    for fill, values in zip(_FILL, fields, strict=True):
        deque(map(fill, found, values.tolist()), maxlen=0)
    return found


def _parts(
    connection: sqlite3.Connection, metric: int, subjects: Ints | None, since: int, until: int, step: int
) -> Iterator[tuple[Level, Columns]]:
    # A reading is in the head or in chunks. An hour may have readings in both, if the clock was set back.
    for span in choose(since, until, step, read_floors(connection)):
        for block in _blocks(connection, span.level, subjects):
            for part in read_chunks(connection, span.level, metric, block, span.since, span.until):
                yield span.level, part.of(subjects)
    newest = read_head(connection, metric, since, until, subjects)
    if newest is not None:
        yield Level.RAW, newest


def _blocks(connection: sqlite3.Connection, level: Level, subjects: Ints | None) -> list[int]:
    if subjects is not None:
        return [int(block) for block in np.unique(subjects // level.block)]
    (last,) = connection.execute("SELECT ifnull(max(id), 0) FROM subject").fetchone()
    return list(range(last // level.block + 1))
