"""Readings of several subjects over time as arrays, raw or rolled up, and their form on disk.

Both kinds have one shape, so that readers need not know from which level a span came: a raw reading is a roll-up of
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corral.telemetry.history.precision import MISSING, Ints
from corral.telemetry.history.table_codec import pack, unpack

_LEAST_OF_NOTHING = np.iinfo(np.int64).max
_MOST_OF_NOTHING = np.iinfo(np.int64).min


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Columns:
    """Tables have a row per subject and a column per time. Without a reading, count and total are 0."""

    subjects: Ints
    #: in milliseconds, in order
    times: Ints
    totals: Ints
    least: Ints
    most: Ints
    counts: Ints

    def between(self, since: int, until: int) -> Columns:
        first, last = np.searchsorted(self.times, (since, until))
        return self if (first, last) == (0, len(self.times)) else self._picked(slice(None), slice(first, last))

    def of(self, subjects: Ints | None) -> Columns:
        """The columns of these subjects; None means all."""
        if subjects is None:
            return self
        wanted = np.isin(self.subjects, subjects)
        return self if wanted.all() else self._picked(wanted, slice(None))

    def summed(self, step: int) -> Columns:
        """One column per step that has data, at the step's beginning."""
        if not len(self.times):
            return self
        steps = self.times // step * step
        first = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
        if len(first) == len(steps):
            return Columns(
                subjects=self.subjects,
                times=steps,
                totals=self.totals,
                least=self.least,
                most=self.most,
                counts=self.counts,
            )
        return Columns(
            subjects=self.subjects,
            times=steps[first],
            totals=np.add.reduceat(self.totals, first, axis=1),
            least=np.minimum.reduceat(self.least, first, axis=1),
            most=np.maximum.reduceat(self.most, first, axis=1),
            counts=np.add.reduceat(self.counts, first, axis=1),
        )

    def blocks(self, size: int) -> Iterable[tuple[int, Columns]]:
        """Split by the subject's id divided by the size; times and subjects without data are left out."""
        numbers: Ints = self.subjects // size
        for number in np.unique(numbers).tolist():
            part = self._picked(np.equal(numbers, number), slice(None))
            there = np.greater(part.counts, 0)
            part = part._picked(np.asarray(there.any(axis=1)), np.asarray(there.any(axis=0)))
            if part.counts.size:
                yield number, part

    def _picked(self, rows: npt.NDArray[np.bool_] | slice, moments: npt.NDArray[np.bool_] | slice) -> Columns:
        return Columns(
            subjects=self.subjects[rows],
            times=self.times[moments],
            totals=self.totals[rows][:, moments],
            least=self.least[rows][:, moments],
            most=self.most[rows][:, moments],
            counts=self.counts[rows][:, moments],
        )


def raw_columns(subjects: Ints, times: Ints, values: Ints) -> Columns:
    """Raw readings; MISSING where there is none."""
    there = values != MISSING
    return Columns(
        subjects=subjects,
        times=times,
        totals=np.where(there, values, 0),
        least=np.where(there, values, _LEAST_OF_NOTHING),
        most=np.where(there, values, _MOST_OF_NOTHING),
        counts=there.astype(np.int64),
    )


def joined(parts: Iterable[Columns]) -> Columns:
    """Merge all parts. Readings of the same subject and time are added up."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    empty = np.empty(0, np.int64)
    subjects = np.unique(np.concatenate([part.subjects for part in parts] or [empty]))
    times = np.unique(np.concatenate([part.times for part in parts] or [empty]))
    shape = (len(subjects), len(times))
    whole = Columns(
        subjects=subjects,
        times=times,
        totals=np.zeros(shape, np.int64),
        least=np.full(shape, _LEAST_OF_NOTHING),
        most=np.full(shape, _MOST_OF_NOTHING),
        counts=np.zeros(shape, np.int64),
    )
    for part in parts:
        place = np.ix_(np.searchsorted(subjects, part.subjects), np.searchsorted(times, part.times))
        whole.totals[place] += part.totals
        whole.counts[place] += part.counts
        whole.least[place] = np.minimum(whole.least[place], part.least)
        whole.most[place] = np.maximum(whole.most[place], part.most)
    return whole


def interleaved(parts: Iterable[Columns]) -> Columns:
    """Merge raw readings, ordered by time. Readings of the same time stay separate."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    subjects = np.unique(np.concatenate([part.subjects for part in parts]))
    times = np.concatenate([part.times for part in parts])
    values = np.full((len(subjects), len(times)), MISSING)
    begin = 0
    for part in parts:
        moments = np.arange(begin, begin + len(part.times))
        place = np.ix_(np.searchsorted(subjects, part.subjects), moments)
        values[place] = np.where(part.counts > 0, part.totals, MISSING)
        begin += len(part.times)
    order = np.argsort(times, kind="stable")
    return raw_columns(subjects, times[order], values[:, order])


def encode_raw(columns: Columns) -> bytes:
    there = columns.counts > 0
    tables = [_line(columns.subjects), _line(columns.times), _filled(columns.totals, there)]
    if not there.all():
        tables.append(columns.counts)
    return pack(tables)


def decode_raw(data: bytes) -> Columns:
    subjects, times, values, *there = unpack(data)
    if there:
        values[there[0] == 0] = MISSING
        return raw_columns(subjects[0], times[0], values)
    return Columns(
        subjects=subjects[0], times=times[0], totals=values, least=values, most=values, counts=np.ones_like(values)
    )


def encode_rollup(columns: Columns) -> bytes:
    """The mean is stored as whole units, with the remainder of the total: exact, while a total itself would change with
    the number of readings in a step."""
    there = columns.counts > 0
    counts = np.maximum(columns.counts, 1)
    means = columns.totals // counts
    return pack(
        [
            _line(columns.subjects),
            _line(columns.times),
            columns.counts,
            _filled(means, there),
            columns.totals - means * counts,
            np.where(there, means - np.where(there, columns.least, 0), 0),
            np.where(there, np.where(there, columns.most, 0) - means, 0),
        ]
    )


def decode_rollup(data: bytes) -> Columns:
    subjects, times, counts, means, rest, below, above = unpack(data)
    there = counts > 0
    return Columns(
        subjects=subjects[0],
        times=times[0],
        totals=means * counts + rest,
        least=np.where(there, means - below, _LEAST_OF_NOTHING),
        most=np.where(there, means + above, _MOST_OF_NOTHING),
        counts=counts,
    )


def _line(values: Ints) -> Ints:
    return values.reshape(1, -1)


def _filled(values: Ints, there: npt.NDArray[np.bool_]) -> Ints:
    """Missing values are filled with the previous value (or the first one): a difference of zero costs nothing."""
    if there.all():
        return values
    columns = np.arange(values.shape[1])
    latest = np.maximum.accumulate(np.where(there, columns, -1), axis=1)
    first = there.argmax(axis=1)[:, None]
    return np.take_along_axis(values, np.where(latest < 0, first, latest), axis=1)
