"""Progress reports: at most once a second, by rank 0, in a file that readers never see half written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from corral.checkpoint.keeper import Keeper
from corral.checkpoint.progress import PROGRESS, Progress, parse_progress, write_progress
from tests.unit.checkpoint.conftest import Clock

Make = Callable[..., Keeper]


def reported(directory: Path) -> Progress | None:
    path = directory / PROGRESS
    return parse_progress(path.read_bytes()) if path.exists() else None


def test_steps_report_themselves_at_most_once_a_second(make: Make, clock: Clock, tmp_path: Path) -> None:
    keeper = make(attempt=3)
    seen = []
    for step in keeper.steps(6, lambda: {}):
        found = reported(tmp_path / "checkpoints")
        seen.append((step, None if found is None else (found.step, found.attempt)))
        clock.now += 0.6
    assert seen == [(0, None), (1, (1, 3)), (2, (1, 3)), (3, (3, 3)), (4, (3, 3)), (5, (5, 3))]


def test_only_rank_0_reports_and_nothing_without_a_directory(make: Make, tmp_path: Path) -> None:
    make(rank=1, world=2).progress(4)
    make(directory=None).progress(4)
    assert reported(tmp_path / "checkpoints") is None
    make(rank=0, world=2).progress(4)
    assert reported(tmp_path / "checkpoints") is not None


@pytest.mark.parametrize("step", [-1, 1.5, True, "3"])
def test_a_step_is_a_whole_number(make: Make, step: object) -> None:
    with pytest.raises(ValueError, match="whole number"):
        make().progress(step)  # type: ignore[arg-type]


def test_a_report_that_cannot_be_written_ends_no_training(
    make: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / PROGRESS).mkdir()
    make().progress(1)
    assert "progress is not reported" in capfd.readouterr().err


def test_a_later_report_replaces_an_earlier_one_and_leaves_the_directory_as_it_is(tmp_path: Path) -> None:
    write_progress(tmp_path, Progress(step=123_456_789, attempt=12, at=1234567.5))
    before = tmp_path.stat().st_mtime_ns
    write_progress(tmp_path, Progress(step=7, attempt=1, at=2.25))
    assert reported(tmp_path) == Progress(step=7, attempt=1, at=2.25)
    assert tmp_path.stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [b"", b"1 2 3.000\n", b"x" * 64, b"-1 2 3.000".ljust(63) + b"\n", b"9" * 64])
def test_anything_else_is_no_report(content: bytes) -> None:
    assert parse_progress(content) is None
