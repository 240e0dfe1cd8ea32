"""The metric history: what it costs to keep a day of a thousand GPUs, how large that is, and how long questions take.

The day goes through the real path, one `append` per round with compaction and roll-ups, only faster. The peer is what
one would write first: one row per reading in SQLite, in the same run, on a part of the same readings.
`CORRAL_BENCH_GPUS` and `CORRAL_BENCH_HOURS` make it smaller.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.tables import Row, median, percentile, print_table, spread
from corral.control.ports import GPU_METRICS, GpuReading, Metric, Round
from corral.server.monitoring.recorder import Recorder
from corral.telemetry.history import EmbeddedHistory
from corral.telemetry.history.columns import raw_columns
from corral.telemetry.history.compaction import rollup_rows, write_rows
from corral.telemetry.history.file import HistoryFile
from corral.telemetry.history.names import Metrics
from corral.telemetry.history.precision import Ints, quantise

GPUS = int(os.environ.get("CORRAL_BENCH_GPUS", "1000"))
HOURS = int(os.environ.get("CORRAL_BENCH_HOURS", "24"))
INTERVAL = 5
BEGIN = 1_800_000_000
PEER_ROUNDS = 60
Floats = npt.NDArray[np.float64]
Rounds = dict[Metric, Floats]


@dataclass(slots=True)
class DayClock:
    at: float

    def now(self) -> float:
        return self.at


class Fleet:
    """GPUs that jobs come to and leave: each runs at a level of its own for a while, with noise, or idles.

    Readings come as coarsely as NVML gives them: whole percents, degrees and MHz, milliwatts, millijoules.
    """

    def __init__(self, gpus: int) -> None:
        self._chance = np.random.default_rng(7)
        self.names = [f"GPU-{number:08x}-5f0c-11ef-9cd2-0242ac120002" for number in range(gpus)]
        self._level = np.zeros(gpus)
        self._memory = np.zeros(gpus)
        self._left = self._chance.integers(0, 2000, gpus)
        self._celsius = np.full(gpus, 35.0)
        self._joules = self._chance.uniform(0, 1e9, gpus)

    def hour(self) -> Rounds:
        """An hour of readings: a table per metric, one row per round."""
        rounds = 3600 // INTERVAL
        count = len(self.names)
        found: Rounds = {metric: np.zeros((rounds, count)) for metric in GPU_METRICS}
        for number in range(rounds):
            self._move()
            busy = self._level > 0
            noise = self._chance.normal(0, 0.02, count) - 0.3 * (self._chance.random(count) < 0.02)
            use = np.where(busy, np.clip(self._level + noise, 0, 1), 0)
            watts = 60 + 340 * use + self._chance.normal(0, np.where(busy, 6, 0.3), count)
            self._celsius += (30 + watts / 9 - self._celsius) * 0.05
            self._joules += watts * INTERVAL
            throttled = watts > 390
            found[Metric.GPU_UTILIZATION][number] = np.rint(use * 100) / 100
            found[Metric.GPU_MEMORY_USED][number] = self._memory
            found[Metric.GPU_TEMPERATURE][number] = np.rint(self._celsius)
            found[Metric.GPU_POWER][number] = np.rint(watts * 1000) / 1000
            found[Metric.GPU_ENERGY][number] = np.rint(self._joules * 1000) / 1000
            found[Metric.GPU_SM_CLOCK][number] = np.where(busy, 1410 - 15 * np.rint(throttled * use * 3), 210)
            found[Metric.GPU_MEMORY_CLOCK][number] = np.where(busy, 1593, 1215)
            found[Metric.GPU_THROTTLED][number] = throttled
        return found

    def _move(self) -> None:
        self._left -= 1
        over = np.flatnonzero(self._left <= 0)
        self._left[over] = self._chance.integers(120, 5000, len(over))
        works = self._chance.random(len(over)) < 0.7
        self._level[over] = np.where(works, self._chance.uniform(0.3, 1, len(over)), 0)
        self._memory[over] = np.where(works, self._chance.integers(4, 80, len(over)) << 30, 3 << 20)


@dataclass(kw_only=True, slots=True)
class Ingested:
    cpu_seconds: float
    append_ms: list[float]
    samples: int


def open_history(path: Path, clock: DayClock) -> EmbeddedHistory:
    return EmbeddedHistory(
        path,
        raw_seconds=24 * 3600,
        minute_seconds=30 * 24 * 3600,
        hour_seconds=365 * 24 * 3600,
        clock=clock,
        tended=False,
    )


def ingest(history: EmbeddedHistory, clock: DayClock, fleet: Fleet, hours: int) -> Ingested:
    """CPU of the whole process in the parts that a server would run: append, compaction, roll-ups, pruning."""
    chance = np.random.default_rng(11)
    cpu, times, samples = 0.0, [], 0
    for hour in range(hours):
        readings = fleet.hour()
        for number in range(3600 // INTERVAL):
            values = {
                metric: dict(zip(fleet.names, table[number].tolist(), strict=True))
                for metric, table in readings.items()
            }
            # Rounds are a few milliseconds early or late.
            at = BEGIN + hour * 3600 + number * INTERVAL + 1 + chance.normal(0, 0.01)
            clock.at = at
            begun, begun_cpu = time.perf_counter(), time.process_time()
            history.append(at, values)
            cpu += time.process_time() - begun_cpu
            times.append((time.perf_counter() - begun) * 1000)
            samples += sum(len(by) for by in values.values())
        begun_cpu = time.process_time()
        history.tend()
        cpu += time.process_time() - begun_cpu
    return Ingested(cpu_seconds=cpu, append_ms=times, samples=samples)


def collecting_share(fleet: Fleet, rounds: int = 50) -> float:
    """CPU of making values of readings, as the recorder does, in percent of one core. Nothing is written."""
    clock = DayClock(at=BEGIN)
    recorder = Recorder(_Nowhere(), clock=clock, interval_seconds=INTERVAL)
    looks = [_look(fleet, BEGIN + number * INTERVAL) for number in range(rounds)]
    begun = time.process_time()
    for look in looks:
        clock.at = look.at
        recorder.take(look)
        recorder.record()
    return (time.process_time() - begun) / (rounds * INTERVAL) * 100


def _look(fleet: Fleet, at: float) -> Round:
    return Round(
        at=at,
        gpus=[
            GpuReading(
                gpu_id=name,
                at=at,
                utilization=0.5,
                memory_used_bytes=1 << 30,
                temperature_celsius=60.0,
                power_watts=250.0,
                energy_joules=1e6,
                sm_clock_mhz=1410.0,
                memory_clock_mhz=1593.0,
            )
            for name in fleet.names
        ],
    )


class _Nowhere(EmbeddedHistory):
    def __init__(self) -> None:
        pass

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        pass


def compacted_bytes(path: Path) -> int:
    """All pages of chunks and their index: raw, minutes and hours."""
    with sqlite3.connect(path) as connection:
        pages = connection.execute(
            "SELECT sum(pgsize) FROM dbstat WHERE name IN ('chunk', 'chunk_by_place')"
        ).fetchone()
    return int(pages[0])


def fill_month(path: Path, days: int = 30) -> None:
    """Thirty days of minutes and hours of one metric, by the writer that compaction uses; no raw readings."""
    fleet_minutes = _minutes(GPUS)
    open_history(path, DayClock(at=BEGIN)).close()
    file = HistoryFile(path)
    with file.write() as connection:
        metrics = Metrics(connection)
        connection.executemany(
            "INSERT INTO subject VALUES (?, ?)", [(number + 1, name) for number, name in enumerate(Fleet(GPUS).names)]
        )
    metric = metrics.ids[Metric.GPU_UTILIZATION]
    subjects = np.arange(1, GPUS + 1, dtype=np.int64)
    for hour in range(days * 24):
        start = (BEGIN // 86_400 * 86_400 + hour * 3600) * 1000
        columns = raw_columns(subjects, start + np.arange(60, dtype=np.int64) * 60_000, next(fleet_minutes))
        with file.write() as connection:
            write_rows(connection, rollup_rows(connection, metric, columns))
    file.close()


def _minutes(gpus: int) -> Iterator[Ints]:
    chance = np.random.default_rng(3)
    level = chance.random(gpus)[:, None]
    while True:
        level = np.clip(level + chance.normal(0, 0.05, (gpus, 1)), 0, 1)
        yield quantise(np.clip(level + chance.normal(0, 0.02, (gpus, 60)), 0, 1), 1000)


def measure(ask: Callable[[], object], runs: int = 50) -> list[float]:
    ask()
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        ask()
        times.append((time.perf_counter() - begun) * 1000)
    return times


class RowPerSample:
    """The peer: a table of (metric, subject, at, value) with an index, one row per reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        self._connection.execute(
            "CREATE TABLE sample (metric INTEGER, subject INTEGER, at REAL, value REAL, "
            "PRIMARY KEY (metric, subject, at)) WITHOUT ROWID"
        )

    def ingest(self, fleet: Fleet, rounds: int) -> Ingested:
        readings = fleet.hour()
        numbers = list(enumerate(fleet.names))
        self._connection.executemany("INSERT INTO subject VALUES (?, ?)", numbers)
        cpu, times, samples = 0.0, [], 0
        for number in range(rounds):
            rows = [
                (metric, subject, BEGIN + number * INTERVAL, value)
                for metric, table in enumerate(readings.values())
                for subject, value in enumerate(table[number].tolist())
            ]
            begun, begun_cpu = time.perf_counter(), time.process_time()
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT INTO sample VALUES (?, ?, ?, ?)", rows)
            self._connection.execute("COMMIT")
            cpu += time.process_time() - begun_cpu
            times.append((time.perf_counter() - begun) * 1000)
            samples += len(rows)
        return Ingested(cpu_seconds=cpu, append_ms=times, samples=samples)

    def last_minute(self, end: float) -> dict[str, float]:
        return dict(
            self._connection.execute(
                "SELECT name, avg(value) FROM sample JOIN subject ON id = subject "
                "WHERE metric = 0 AND at >= ? AND at < ? GROUP BY subject",
                (end - 60, end),
            ).fetchall()
        )

    def size_bytes(self) -> int:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.path.stat().st_size


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        path, month_path = Path(scratch) / "history.db", Path(scratch) / "month.db"
        clock = DayClock(at=BEGIN)
        fleet = Fleet(GPUS)
        history = open_history(path, clock)
        day = ingest(history, clock, fleet, HOURS)
        end = BEGIN + HOURS * 3600
        size = compacted_bytes(path)
        in_chunks = day.samples * (HOURS - 1) // HOURS  # the last hour is still in the head
        one = fleet.names[GPUS // 2]
        use = Metric.GPU_UTILIZATION
        last_minute = measure(lambda: history.means(use, end - 60, end))
        chart = measure(lambda: history.series(use, [one], end - 86_400, end, 60))
        every = measure(lambda: history.series(use, [one], end - 86_400, end, INTERVAL))
        history.close()

        fill_month(month_path)
        month_begin = BEGIN // 86_400 * 86_400
        month = open_history(month_path, DayClock(at=month_begin + 30 * 86_400))
        daily = measure(lambda: month.series(use, None, month_begin, month_begin + 30 * 86_400, 86_400), runs=20)
        month_points = month.series(use, None, month_begin, month_begin + 30 * 86_400, 86_400)
        assert len(month_points) == GPUS
        assert all(len(points) == 30 and points[0].count == 1440 for points in month_points.values())
        month.close()

        peer = RowPerSample(Path(scratch) / "peer.db")
        rows = peer.ingest(Fleet(GPUS), PEER_ROUNDS)
        peer_size = peer.size_bytes() / rows.samples
        peer_minute = measure(lambda: peer.last_minute(BEGIN + PEER_ROUNDS * INTERVAL), runs=20)

    _print(day, size / in_chunks, last_minute, chart, every, daily, rows, peer_size, peer_minute)


def _print(
    day: Ingested,
    bytes_per_sample: float,
    last_minute: list[float],
    chart: list[float],
    every: list[float],
    daily: list[float],
    peer: Ingested,
    peer_size: float,
    peer_minute: list[float],
) -> None:
    cost, peer_cost = day.cpu_seconds / day.samples * 1e9, peer.cpu_seconds / peer.samples * 1e9
    share = day.cpu_seconds / (HOURS * 3600) * 100 + collecting_share(Fleet(GPUS))
    load = f"{GPUS:,} GPUs × {len(GPU_METRICS)} metrics every {INTERVAL} s"
    print_table(
        f"Metric history, {HOURS} h of {load} ({day.samples / 1e6:.0f} million readings)",
        [
            Row(
                what="CPU of recording them, with compaction and roll-ups",
                value=f"{share:.2f} % of one core",
                target="< 10 %",
                ratio=f"{peer_cost / cost:.1f} × cheaper than rows ({cost:.0f} against {peer_cost:.0f} ns a reading)",
            ),
            Row(what="append of one round", value=_figures(day.append_ms), spread=spread(day.append_ms, "ms", 2)),
            Row(
                what="on disk after compaction: raw, minutes and hours",
                value=f"{bytes_per_sample:.2f} bytes a reading",
                target="≤ 2 bytes",
                ratio=f"{peer_size / bytes_per_sample:.1f} × smaller than a row per reading ({peer_size:.1f} bytes)",
            ),
            Row(
                what="mean of the last 60 s of every GPU",
                value=_figures(last_minute),
                spread=spread(last_minute, "ms"),
                target="< 20 ms",
                ratio=f"{median(peer_minute) / median(last_minute):.1f} × quicker than a row per reading "
                f"({median(peer_minute):.1f} ms, with {PEER_ROUNDS * INTERVAL / 60:.0f} minutes in it)",
            ),
            Row(what="24 h of one GPU by minutes", value=_figures(chart), spread=spread(chart, "ms"), target="< 50 ms"),
            Row(
                what=f"24 h of one GPU every {INTERVAL} s",
                value=_figures(every),
                spread=spread(every, "ms"),
                target="< 50 ms",
            ),
            Row(
                what="daily mean of every GPU over 30 days",
                value=_figures(daily),
                spread=spread(daily, "ms"),
                target="< 500 ms",
            ),
        ],
    )


def _figures(milliseconds: list[float]) -> str:
    return f"p50 {median(milliseconds):.1f} ms, p99 {percentile(milliseconds, 99):.1f} ms"


if __name__ == "__main__":
    main()
