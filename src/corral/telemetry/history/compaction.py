"""Moves readings from the head into chunks, and removes old chunks.

A chunk has one window of time, one metric, and a block of subjects with neighbouring ids: a query about one GPU reads
little more than its own readings, and the compressor still has enough data. The work is done in small steps, and each
moves one metric's hour in one transaction: readers see it in the head or in chunks, never in both or in neither, and
writers wait for milliseconds only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from corral.telemetry.history.columns import (
    Columns,
    decode_raw,
    decode_rollup,
    encode_raw,
    encode_rollup,
    interleaved,
    joined,
)
from corral.telemetry.history.file import HistoryFile
from corral.telemetry.history.head import first_moment, read_head
from corral.telemetry.history.levels import COMPACTION_MS, Level, floor_to

Rows = list[tuple[int, int, int, int, bytes]]


def compact(file: HistoryFile, metrics: list[int]) -> Iterator[None]:
    """Move every hour that is over; one step at a time, so that the caller can stop in between."""
    with file.read() as connection:
        (newest,) = connection.execute("SELECT ifnull(max(at), 0) FROM head").fetchone()
    border = floor_to(newest, COMPACTION_MS)
    for metric in metrics:
        while _compact_window(file, metric, border):
            yield


def prune(file: HistoryFile, metrics: list[int], floors: Mapping[Level, int]) -> Iterator[None]:
    """Drop the windows of each level that end before its floor; one step at a time."""
    with file.read() as connection:
        present = read_floors(connection)
        (subjects,) = connection.execute("SELECT ifnull(max(id), 0) FROM subject").fetchone()
    for level, floor in floors.items():
        if floor <= present[level]:
            continue
        with file.write() as connection:
            # Readers rely on the floor, so it is set first: data that is being removed is not read any more.
            connection.execute("UPDATE level SET floor = ? WHERE id = ?", (floor, level))
        for metric in metrics:
            with file.write() as connection:
                connection.executemany(
                    "DELETE FROM chunk WHERE level = ? AND metric = ? AND block = ? AND start < ?",
                    [(level, metric, block, floor) for block in range(subjects // level.block + 1)],
                )
            yield


def read_floors(connection: sqlite3.Connection) -> dict[Level, int]:
    return {Level(number): floor for number, floor in connection.execute("SELECT id, floor FROM level")}


def read_chunks(
    connection: sqlite3.Connection, level: Level, metric: int, block: int, since: int, until: int
) -> Iterator[Columns]:
    """The data of a level for a block's subjects from `since` on and before `until`, window by window."""
    decode = decode_raw if level is Level.RAW else decode_rollup
    for (data,) in connection.execute(
        "SELECT data FROM chunk "
        "WHERE level = ? AND metric = ? AND block = ? AND start >= ? AND start < ? ORDER BY start",
        (level, metric, block, floor_to(since, level.window_ms), until),
    ):
        yield decode(data).between(since, until)


def chunk_rows(connection: sqlite3.Connection, metric: int, readings: Columns) -> Rows:
    """One hour of a metric at every level."""
    return [
        *_rows(connection, Level.RAW, metric, readings),
        *rollup_rows(connection, metric, readings.summed(Level.MINUTE.step_ms)),
    ]


def rollup_rows(connection: sqlite3.Connection, metric: int, minutes: Columns) -> Rows:
    """One hour of minutes, and the hour."""
    hours = minutes.summed(Level.HOUR.step_ms)
    return [*_rows(connection, Level.MINUTE, metric, minutes), *_rows(connection, Level.HOUR, metric, hours)]


def write_rows(connection: sqlite3.Connection, rows: Rows) -> None:
    connection.executemany(
        "INSERT INTO chunk (level, metric, block, start, data) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (level, metric, block, start) DO UPDATE SET data = excluded.data",
        rows,
    )


def _compact_window(file: HistoryFile, metric: int, border: int) -> bool:
    """Whether there was an hour to move."""
    with file.read() as connection:
        first = first_moment(connection, metric)
        if first is None or first >= border:
            return False
        start = floor_to(first, COMPACTION_MS)
        readings = read_head(connection, metric, start, start + COMPACTION_MS)
        assert readings is not None
        # Only one thread compacts, so this is unchanged in the transaction that writes.
        rows = chunk_rows(connection, metric, readings)
    with file.write() as connection:
        write_rows(connection, rows)
        connection.execute("DELETE FROM head WHERE metric = ? AND at < ?", (metric, start + COMPACTION_MS))
    return True


def _rows(connection: sqlite3.Connection, level: Level, metric: int, readings: Columns) -> Rows:
    """Merge with the existing chunk: with other hours, or with the same hour if the clock was set back."""
    encode, put_together = (encode_raw, interleaved) if level is Level.RAW else (encode_rollup, joined)
    start = floor_to(int(readings.times[0]), level.window_ms)
    rows = []
    for block, part in readings.blocks(level.block):
        before = _present(connection, level, metric, block, start)
        rows.append((int(level), metric, block, start, encode(put_together([*before, part]))))
    return rows


def _present(connection: sqlite3.Connection, level: Level, metric: int, block: int, start: int) -> list[Columns]:
    return list(read_chunks(connection, level, metric, block, start, start + level.window_ms))
