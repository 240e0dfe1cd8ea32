"""The embedded history: what it keeps, refuses and says."""

from __future__ import annotations

import logging
import math
import sqlite3
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corral.control.ports import CLUSTER, HistoryUnavailable, Metric, Point
from corral.telemetry.history import EmbeddedHistory, HistoryTooNew
from corral.telemetry.history.file import FORMATS
from corral.telemetry.history.precision import GREATEST, PER_UNIT
from corral.telemetry.history.table_codec import pack, unpack
from tests.integration.waiting import wait_until
from tests.unit.telemetry.history_model import SetClock, open_history

#: The beginning of an hour.
T = 1_800_000_000.0
UTIL = Metric.GPU_UTILIZATION


@pytest.fixture
def clock() -> SetClock:
    return SetClock(at=T)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def fill(history: EmbeddedHistory, begin: float, end: float, every: float = 5.0, value: float = 0.5) -> None:
    at = begin
    while at < end:
        history.append(at, {UTIL: {"g0": value, "g1": value / 2}})
        at += every


def chunks(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT count(*) FROM chunk").fetchone()[0])


tables = hnp.arrays(
    np.int64,
    st.tuples(st.integers(0, 5), st.integers(0, 9)),
    elements=st.one_of(
        st.integers(-3, 3), st.integers(-(1 << 60), 1 << 60), st.integers(-9, 9).map(lambda n: n * 1000)
    ),
)


@given(st.lists(tables, max_size=4))
def test_packed_numbers_come_back_as_they_were(packed: list[np.ndarray]) -> None:
    back = unpack(pack(packed))
    assert len(back) == len(packed)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(back, packed, strict=True))


def test_every_metric_has_a_unit() -> None:
    assert set(PER_UNIT) == set(Metric)


def test_answers_by_step(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    for number, value in enumerate((0.1, 0.2, 0.6)):
        history.append(T + number * 30, {UTIL: {"g0": value}, Metric.CLUSTER_POWER: {CLUSTER: 1000.25}})
    series = history.series(UTIL, ["g0", "unknown"], T, T + 600, 60)
    assert series == {
        "g0": [
            Point(at=T, mean=series["g0"][0].mean, least=0.1, most=0.2, count=2),
            Point(at=T + 60, mean=0.6, least=0.6, most=0.6, count=1),
        ]
    }
    assert series["g0"][0].mean == pytest.approx(0.15)
    assert history.means(UTIL, T + 30, T + 61) == {"g0": pytest.approx(0.4)}
    assert history.means(UTIL, T + 600, T + 700) == {}
    assert history.means(Metric.CLUSTER_POWER, T, T + 90)[CLUSTER] == pytest.approx(1000.25, abs=0.05)
    history.close()


def test_nothing_is_lost_or_counted_twice_while_hours_move(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    fill(history, T - 3 * 3600, T + 100)
    before = history.series(UTIL, None, T - 9000, T + 100, 300)
    history.tend()
    assert chunks(path) == 7  # three hours at two levels, and one chunk of hours that was added to
    assert history.series(UTIL, None, T - 9000, T + 100, 300) == before
    assert sum(point.count for point in before["g0"]) == 9100 // 5
    history.close()


def test_questions_while_hours_move(path: Path, clock: SetClock) -> None:
    """One that asks at any moment sees every reading once."""
    history = open_history(path, clock)
    fill(history, T - 20 * 3600, T + 10, every=60)
    seen: set[int] = set()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            seen.add(sum(point.count for point in history.series(UTIL, ["g0"], T - 90_000, T + 10, 3600)["g0"]))

    asking = threading.Thread(target=ask)
    asking.start()
    history.tend()
    over.set()
    asking.join()
    assert seen == {1201}
    history.close()


def test_old_readings_come_from_roll_ups(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock, raw_hours=1, minute_hours=5, hour_hours=8760)
    for since, until in ((T - 8 * 3600, T - 7 * 3600), (T - 4 * 3600, T - 3 * 3600), (T - 1800, T + 1)):
        fill(history, since, until)
    history.tend()
    assert len(history.series(UTIL, ["g0"], T - 1800, T, 5)["g0"]) == 360
    minutes = history.series(UTIL, ["g0"], T - 4 * 3600, T - 3 * 3600, 5)["g0"]
    assert [(point.at, point.count) for point in minutes] == [(T - 4 * 3600 + n * 60, 12) for n in range(60)]
    (hour,) = history.series(UTIL, ["g0"], T - 8 * 3600, T - 7 * 3600, 60)["g0"]
    assert (hour.at, hour.count, hour.mean) == (T - 8 * 3600, 720, 0.5)
    history.close()


def test_readings_before_the_newest_are_kept_and_that_is_logged_once(
    path: Path, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    history = open_history(path, clock)
    history.append(T, {UTIL: {"g0": 0.5}})
    with caplog.at_level(logging.WARNING):
        for at in (T - 7200, T - 7195, T - 1):
            history.append(at, {UTIL: {"g0": 0.9}})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    found = history.series(UTIL, None, 0, T + 1, 0.001)["g0"]
    assert [(point.at, point.mean) for point in found] == [(T - 7200, 0.9), (T - 7195, 0.9), (T - 1, 0.9), (T, 0.5)]
    history.append(T + 5, {UTIL: {"g0": 0.7}})
    assert history.means(UTIL, T, T + 10) == {"g0": 0.6}
    history.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, float(GREATEST), 1e300])
def test_invalid_readings_are_left_out(path: Path, clock: SetClock, value: float) -> None:
    history = open_history(path, clock)
    history.append(T, {UTIL: {"g0": value, "g1": 0.5}})
    assert history.means(UTIL, T, T + 1) == {"g1": 0.5}
    history.close()


def test_large_counters_stay_exact(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    joules = [5e12 + 3500.0 * number for number in range(800)]
    for number, value in enumerate(joules):
        history.append(T - 3700 + 5 * number, {Metric.GPU_ENERGY: {"g0": value}})
    history.tend()
    points = history.series(Metric.GPU_ENERGY, None, T - 3700, T + 400, 5)["g0"]
    assert [point.mean for point in points] == joules
    history.close()


def test_only_its_owner_may_read_the_file(path: Path, clock: SetClock) -> None:
    open_history(path, clock).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_of_a_later_format_is_refused_and_left_alone(path: Path, clock: SetClock) -> None:
    open_history(path, clock).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(FORMATS) + 1}")
    before = path.read_bytes()
    with pytest.raises(HistoryTooNew, match=f"has format {len(FORMATS) + 1}, and this corral knows formats up to"):
        open_history(path, clock)
    assert path.read_bytes() == before


def test_other_files_are_refused(path: Path, clock: SetClock) -> None:
    path.write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(HistoryUnavailable, match="file is not a database"):
        open_history(path, clock)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (id)")
    with pytest.raises(HistoryUnavailable, match="not corral's metric history"):
        open_history(path, clock)


def test_a_place_that_cannot_be_written(tmp_path: Path, clock: SetClock) -> None:
    with pytest.raises(HistoryUnavailable, match="cannot use the metric history"):
        open_history(tmp_path / "nowhere" / "history.db", clock)


def test_units_of_the_file_stand(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    history.append(T, {UTIL: {"g0": 0.5}})
    history.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE metric SET per_unit = 500 WHERE name = ?", (UTIL.value,))
    history = open_history(path, clock)
    history.append(T + 5, {UTIL: {"g0": 0.5}})
    assert [point.mean for point in history.series(UTIL, None, T, T + 10, 5)["g0"]] == [1.0, 0.5]
    history.close()


def test_a_write_that_fails_leaves_nothing_behind(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    history.append(T, {UTIL: {"g0": 0.5}})
    with sqlite3.connect(path) as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON head BEGIN SELECT raise(ABORT, 'disk full'); END")
    with pytest.raises(HistoryUnavailable, match="disk full"):
        history.append(T + 5, {UTIL: {"g0": 0.5, "new": 0.5}})
    with sqlite3.connect(path) as other:
        other.execute("DROP TRIGGER full")
    history.append(T + 5, {UTIL: {"g0": 0.7, "new": 0.9}})
    assert history.means(UTIL, T, T + 10) == {"g0": 0.6, "new": 0.9}
    history.close()


def test_a_damaged_chunk_is_reported_not_used(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    fill(history, T - 3600, T + 1, every=60)
    history.tend()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE chunk SET data = substr(data, 1, length(data) - 9) || zeroblob(9) WHERE level = 0")
    with pytest.raises(HistoryUnavailable, match="damaged"):
        history.series(UTIL, None, T - 3600, T, 60.5)
    assert len(history.series(UTIL, ["g0"], T - 3600, T, 60)["g0"]) == 60
    history.close()


def test_a_closed_history_says_so(path: Path, clock: SetClock) -> None:
    history = open_history(path, clock)
    history.close()
    history.close()
    with pytest.raises(HistoryUnavailable, match="closed"):
        history.means(UTIL, T, T + 1)
    with pytest.raises(HistoryUnavailable, match="closed"):
        history.append(T, {UTIL: {"g0": 0.5}})


def test_history_thread_moves_hours_by_itself(path: Path, clock: SetClock) -> None:
    history = EmbeddedHistory(path, raw_seconds=86400, minute_seconds=86400, hour_seconds=86400, clock=clock)
    fill(history, T - 3600, T, every=60)
    clock.at = T + 1
    history.append(T + 1, {UTIL: {"g0": 0.5}})
    wait_until(lambda: chunks(path) == 3, "the hour in chunks")
    assert history.describe()["newest_at"] == T + 1
    oldest = history.describe()["oldest_at"]
    assert isinstance(oldest, float)
    assert oldest <= T - 3600
    history.close()
