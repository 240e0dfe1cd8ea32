"""Ids for the names of metrics and subjects, and the order of subjects in the head's rows.

A row of the head holds one number per subject of its layout, so that names are stored once, not with every reading.
Everything here is stored in the file; the copies in memory are updated only after a transaction has been committed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

import numpy as np

from corral.control.ports import Metric
from corral.telemetry.history.precision import PER_UNIT, Ints


class Metrics:
    """The units in the file are kept: a later corral that would store a metric in other units continues with them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT OR IGNORE INTO metric (name, per_unit) VALUES (?, ?)",
            [(metric.value, PER_UNIT[metric]) for metric in Metric],
        )
        rows = connection.execute("SELECT name, id, per_unit FROM metric").fetchall()
        known = {metric.value: metric for metric in Metric}
        self.ids = {known[name]: number for name, number, _ in rows if name in known}
        self.per_unit = {known[name]: per_unit for name, _, per_unit in rows if name in known}
        #: including metrics that only another version of corral knows: they expire, too
        self.numbers: list[int] = [number for _, number, _ in rows]


class Names:
    """Used under the write lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._subjects: dict[str, int] = dict(connection.execute("SELECT name, id FROM subject").fetchall())
        self._layouts: dict[tuple[str, ...], int] = {}
        self._new_subjects: dict[str, int] = {}
        self._new_layouts: dict[tuple[str, ...], int] = {}
        (self._next_layout,) = connection.execute("SELECT ifnull(max(id), 0) + 1 FROM layout").fetchone()

    def layout(self, connection: sqlite3.Connection, names: tuple[str, ...]) -> int:
        """The id of this order of subjects; stored if it is new."""
        number = self._layouts.get(names) or self._new_layouts.get(names)
        if number is None:
            number = self._next_layout
            self._next_layout += 1
            ids = np.array([self._subject(connection, name) for name in names], "<i4")
            connection.execute("INSERT INTO layout VALUES (?, ?)", (number, ids.tobytes()))
            self._new_layouts[names] = number
        return number

    def committed(self) -> None:
        self._subjects |= self._new_subjects
        self._layouts |= self._new_layouts
        self.rolled_back()

    def rolled_back(self) -> None:
        self._new_subjects, self._new_layouts = {}, {}

    def forget_layouts(self, connection: sqlite3.Connection) -> None:
        """Remove layouts that no row of the head uses any more."""
        connection.execute("DELETE FROM layout WHERE id NOT IN (SELECT layout FROM head)")
        left = {number for (number,) in connection.execute("SELECT id FROM layout")}
        self._layouts = {names: number for names, number in self._layouts.items() if number in left}

    def _subject(self, connection: sqlite3.Connection, name: str) -> int:
        number = self._subjects.get(name) or self._new_subjects.get(name)
        if number is None:
            number = len(self._subjects) + len(self._new_subjects) + 1
            connection.execute("INSERT INTO subject (id, name) VALUES (?, ?)", (number, name))
            self._new_subjects[name] = number
        return number


def read_layouts(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Ints]:
    found = {}
    for number in set(numbers):
        (subjects,) = connection.execute("SELECT subjects FROM layout WHERE id = ?", (number,)).fetchone()
        found[number] = np.frombuffer(subjects, "<i4").astype(np.int64)
    return found


def read_subjects(connection: sqlite3.Connection, names: Collection[str]) -> dict[str, int]:
    """The ids of the known names."""
    found = {}
    for name in names:
        row = connection.execute("SELECT id FROM subject WHERE name = ?", (name,)).fetchone()
        if row is not None:
            found[name] = row[0]
    return found
