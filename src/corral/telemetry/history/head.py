"""The newest readings: a row per metric and time, written as they come and few enough to be read quickly.

Readings are moved from the head into chunks when their hour is over (`compaction`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np

from corral.control.ports import Metric
from corral.telemetry.history.columns import Columns, raw_columns
from corral.telemetry.history.levels import COMPACTION_MS, floor_to
from corral.telemetry.history.names import Metrics, Names, read_layouts
from corral.telemetry.history.precision import MISSING, Ints, quantise

_DTYPES = {width: np.dtype(f"<i{width}") for width in (1, 2, 4, 8)}


class Head:
    """Used under the write lock."""

    def __init__(self, connection: sqlite3.Connection, metrics: Metrics) -> None:
        self._metrics = metrics
        self._names = Names(connection)
        #: the subjects of each metric's current rows, with their positions
        self._present: dict[Metric, dict[str, int]] = {}
        self._window = 0
        #: The last time never leaves the head. New readings belong to its hour or a later one, unless the clock was set
        #: back: then they are added to an hour that may have been moved already.
        (self.newest,) = connection.execute("SELECT ifnull(max(at), 0) FROM head").fetchone()

    def append(self, connection: sqlite3.Connection, at: int, values: Mapping[Metric, Mapping[str, float]]) -> None:
        if floor_to(at, COMPACTION_MS) != self._window:
            # Subjects that disappeared take no space after their last hour.
            self._window = floor_to(at, COMPACTION_MS)
            self._present = {}
        rows = [
            (self._metrics.ids[metric], at, *self._row(connection, metric, readings))
            for metric, readings in values.items()
            if readings
        ]
        connection.executemany("INSERT INTO head VALUES (?, ?, ?, ?, ?)", rows)

    def committed(self, at: int) -> None:
        # The clock may have been set back.
        self.newest = max(self.newest, at)
        self._names.committed()

    def rolled_back(self) -> None:
        self._names.rolled_back()
        self._present = {}

    def forget_layouts(self, connection: sqlite3.Connection) -> None:
        self._names.forget_layouts(connection)

    def _row(
        self, connection: sqlite3.Connection, metric: Metric, readings: Mapping[str, float]
    ) -> tuple[int, int, bytes]:
        units = quantise(np.fromiter(readings.values(), np.float64, len(readings)), self._metrics.per_unit[metric])
        places = self._places(metric, readings)
        if len(places) != len(readings) or not _same_order(places, readings):
            laid_out = np.full(len(places), MISSING)
            laid_out[[places[name] for name in readings]] = units
            units = laid_out
        width, data = _bytes_of(units)
        return self._names.layout(connection, tuple(places)), width, data

    def _places(self, metric: Metric, readings: Mapping[str, float]) -> Mapping[str, int]:
        """The subjects of this hour, including new ones."""
        places = self._present.setdefault(metric, {})
        if not places.keys() >= readings.keys():
            for name in readings:
                places.setdefault(name, len(places))
        return places


def first_moment(connection: sqlite3.Connection, metric: int) -> int | None:
    (at,) = connection.execute("SELECT min(at) FROM head WHERE metric = ?", (metric,)).fetchone()
    return None if at is None else int(at)


def read_head(
    connection: sqlite3.Connection, metric: int, since: int, until: int, wanted: Ints | None = None
) -> Columns | None:
    """The readings of the wanted subjects (None: of all) in the head, from `since` on and before `until`; None: no
    readings."""
    rows = connection.execute(
        "SELECT at, layout, width, data FROM head WHERE metric = ? AND at >= ? AND at < ? ORDER BY at, rowid",
        (metric, since, until),
    ).fetchall()
    if not rows:
        return None
    layouts = read_layouts(connection, (layout for _, layout, _, _ in rows))
    subjects = np.unique(np.concatenate(list(layouts.values())))
    if wanted is not None:
        subjects = np.intersect1d(subjects, wanted)
    values = np.full((len(rows), len(subjects)), MISSING)
    by_form: dict[tuple[int, int], list[int]] = {}
    for number, (_, layout, width, _) in enumerate(rows):
        by_form.setdefault((layout, width), []).append(number)
    for (layout, width), numbers in by_form.items():
        places = np.flatnonzero(np.isin(layouts[layout], subjects))
        table = _from_bytes([rows[number][3] for number in numbers], width, len(layouts[layout]), places)
        values[np.ix_(np.array(numbers), np.searchsorted(subjects, layouts[layout][places]))] = table
    times = np.array([at for at, _, _, _ in rows], np.int64)
    return raw_columns(subjects, times, np.ascontiguousarray(values.T))


def _same_order(places: Mapping[str, int], readings: Mapping[str, float]) -> bool:
    return list(places) == list(readings)


def _bytes_of(units: Ints) -> tuple[int, bytes]:
    there = units[units != MISSING]
    greatest = int(np.abs(there).max(initial=0))
    width = next(width for width, dtype in _DTYPES.items() if greatest <= np.iinfo(dtype).max)
    dtype = _DTYPES[width]
    return width, np.where(units == MISSING, np.iinfo(dtype).min, units).astype(dtype).tobytes()


def _from_bytes(rows: Sequence[bytes], width: int, length: int, places: Ints) -> Ints:
    dtype = _DTYPES[width]
    table = np.frombuffer(b"".join(rows), dtype).reshape(len(rows), length)[:, places]
    return np.where(table == np.iinfo(dtype).min, MISSING, table.astype(np.int64))
