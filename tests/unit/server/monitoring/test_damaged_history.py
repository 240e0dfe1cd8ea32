"""A damaged metric history does not stop the start of a server: it is kept, and a new one begins."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from corral.control.ports import History, HistoryUnavailable, Metric
from corral.server.settings.settings import Settings
from corral.server.wiring.monitoring_assembly import HISTORY_FILE, open_history
from corral.telemetry.history import HistoryTooNew
from corral.telemetry.history.file import FORMATS
from tests.unit.telemetry.history_model import SetClock

AT = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / HISTORY_FILE


def opened(home: Path) -> History:
    return open_history(Settings(home=home), SetClock(at=AT))


def used(home: Path) -> None:
    history = opened(home)
    history.append(AT, {Metric.GPU_UTILIZATION: {"g0": 0.5}})
    assert history.means(Metric.GPU_UTILIZATION, AT - 60, AT + 60) == {"g0": 0.5}
    history.close()


@pytest.mark.parametrize("content", [b"this is no database" * 99, b"\0" * 64, b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_damaged_file(tmp_path: Path, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    used(tmp_path)
    assert path.with_name("history.db.damaged").read_bytes() == content


def test_a_file_whose_first_page_is_lost(tmp_path: Path, path: Path) -> None:
    used(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * 3996 + whole[4096:])
    used(tmp_path)
    assert path.with_name("history.db.damaged").exists()


def test_files_that_are_not_damaged_stay(tmp_path: Path, path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (id INTEGER)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(HistoryUnavailable, match="not corral's metric history"):
        opened(tmp_path)
    assert path.read_bytes() == before
    path.unlink()
    used(tmp_path)
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {len(FORMATS) + 1}")
    newer.close()
    with pytest.raises(HistoryTooNew):
        opened(tmp_path)
    assert not path.with_name("history.db.damaged").exists()
