"""The history that corral stores itself, in one SQLite file.

Readings are written into a head; each hour they are moved into compressed chunks and rolled up to minutes and hours;
each level is kept for its retention time. A separate thread does that, concurrently with reading and writing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from corral.control.live.worker import Worker
from corral.control.ports import Clock, Metric, Point
from corral.telemetry.history.compaction import compact, prune, read_floors
from corral.telemetry.history.file import HistoryFile
from corral.telemetry.history.head import Head
from corral.telemetry.history.levels import COMPACTION_MS, HOUR_MS, Level, floor_to
from corral.telemetry.history.names import Metrics, read_subjects
from corral.telemetry.history.queries import gather, points

log = logging.getLogger("corral.telemetry.history")

#: How often the thread checks for hours that are over, besides when one has just ended.
_TEND_SECONDS = 300.0


class EmbeddedHistory:
    """`tended`: a thread compacts and prunes; without it the caller does, with `tend`.

    Raises HistoryTooNew for a file of a later format and HistoryUnavailable for a file that cannot be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        raw_seconds: float,
        minute_seconds: float,
        hour_seconds: float,
        clock: Clock,
        tended: bool = True,
    ) -> None:
        self._kept_ms = {
            Level.RAW: _ms(raw_seconds),
            Level.MINUTE: _ms(minute_seconds),
            Level.HOUR: _ms(hour_seconds),
        }
        self._clock = clock
        self._file = HistoryFile(path)
        with self._file.write() as connection:
            self._metrics = Metrics(connection)
            self._head = Head(connection, self._metrics)
        self._said_set_back = False
        self._tending = threading.Lock()
        self._worker = Worker("history", self.tend, every_seconds=_TEND_SECONDS)
        if tended:
            self._worker.start()

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        moment = _ms(at)
        with self._file.write() as connection:
            before = self._head.newest
            if moment < before:
                self._say_set_back(at, before / 1000)
            try:
                self._head.append(connection, moment, values)
                connection.commit()
            except BaseException:
                self._head.rolled_back()
                raise
            self._head.committed(moment)
        if moment >= before:
            self._said_set_back = False
        if floor_to(moment, COMPACTION_MS) > floor_to(before, COMPACTION_MS):
            self._worker.wake()

    def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
        per_unit = self._metrics.per_unit[metric]
        with self._file.read() as connection:
            # Any level fits a step of an hour; the steps are then summed.
            found = gather(connection, self._metrics.ids[metric], None, _ms(since), _ms(until), HOUR_MS)
            names = dict(connection.execute("SELECT id, name FROM subject").fetchall())
        counts = found.counts.sum(axis=1)
        there = counts > 0
        means = found.totals.sum(axis=1)[there] / counts[there] / per_unit
        return {
            names[number]: mean for number, mean in zip(found.subjects[there].tolist(), means.tolist(), strict=True)
        }

    def series(
        self, metric: Metric, subjects: Collection[str] | None, since: float, until: float, step_seconds: float
    ) -> dict[str, list[Point]]:
        per_unit = self._metrics.per_unit[metric]
        step = max(1, _ms(step_seconds))
        with self._file.read() as connection:
            if subjects is None:
                numbers = dict(connection.execute("SELECT name, id FROM subject").fetchall())
                wanted = None
            else:
                numbers = read_subjects(connection, subjects)
                wanted = np.array(list(numbers.values()), np.int64)
            found = gather(connection, self._metrics.ids[metric], wanted, _ms(since), _ms(until), step)
        row_of = {number: row for row, number in enumerate(found.subjects.tolist())}
        answers = {
            name: points(found, row_of[number], per_unit) for name, number in numbers.items() if number in row_of
        }
        return {name: answer for name, answer in answers.items() if answer}

    def describe(self) -> Mapping[str, str | int | float]:
        with self._file.read() as connection:
            (oldest,) = connection.execute("SELECT min(start) FROM chunk WHERE level = ?", (Level.HOUR,)).fetchone()
            (head,) = connection.execute("SELECT min(at) FROM head").fetchone()
            (subjects,) = connection.execute("SELECT count(*) FROM subject").fetchone()
            floors = read_floors(connection)
        begun = min((moment for moment in (oldest, head) if moment is not None), default=None)
        return {
            "kind": "embedded",
            "place": str(self._file.path),
            "size_bytes": self._file.size_bytes(),
            "subjects": subjects,
            **({} if begun is None else {"oldest_at": max(begun, floors[Level.HOUR]) / 1000}),
            **({} if begun is None else {"newest_at": self._head.newest / 1000}),
            "raw_seconds": self._kept_ms[Level.RAW] / 1000,
            "minute_seconds": self._kept_ms[Level.MINUTE] / 1000,
            "hour_seconds": self._kept_ms[Level.HOUR] / 1000,
        }

    def tend(self) -> None:
        """Move the hours that are over into chunks, and remove old data."""
        with self._tending:
            for _ in self._steps():
                if self._worker.is_stopping:
                    return

    def close(self) -> None:
        self._worker.stop()
        self._file.close()

    def _steps(self) -> Iterator[None]:
        numbers = self._metrics.numbers
        now = _ms(self._clock.now())
        floors = {level: floor_to(now - self._kept_ms[level], level.window_ms) for level in Level}
        yield from chain(compact(self._file, numbers), prune(self._file, numbers, floors))
        with self._file.write() as connection:
            self._head.forget_layouts(connection)

    def _say_set_back(self, at: float, newest: float) -> None:
        if not self._said_set_back:
            self._said_set_back = True
            log.warning("readings of %.3f come after those of %.3f: the clock was set back. Both are kept.", at, newest)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
