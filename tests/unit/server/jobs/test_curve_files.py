"""Curves out of the output directories of jobs: what is new is read, and nothing outside is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corral.core.monitoring import curves
from corral.server.jobs import curve_files
from corral.server.jobs.curve_files import CurveFiles, Curves
from corral.stores.jobs.job_directories import DirectoryWorkspace
from corral.stores.jobs.outputs import DirectoryOutputs
from tests.servers.event_files import event, records

Read = Callable[[], Curves]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    workspace = DirectoryWorkspace(tmp_path)
    workspace.prepare("j-1")
    return workspace.output_dir("j-1")


@pytest.fixture
def read(output: Path, tmp_path: Path) -> Read:
    files = CurveFiles(DirectoryOutputs(DirectoryWorkspace(tmp_path)))
    return lambda: files.read("j-1")


def line(step: int, value: float, attempt: int = 1) -> str:
    return f'{{"step":{step},"at":{step},"attempt":{attempt},"values":{{"loss":{value}}}}}\n'


def values(found: Curves, name: str = "loss") -> list[tuple[int, float | None]]:
    (curve,) = (curve for curve in found.curves if curve.name == name)
    return [(point.step, point.value) for point in curve.points]


def test_a_growing_file_is_read_from_where_the_last_look_ended(output: Path, read: Read) -> None:
    path = output / "curves.jsonl"
    path.write_text(line(0, 3.0) + line(1, 2.0)[:10])
    assert values(read()) == [(0, 3.0)], "a line that is still being written is left for later"
    path.write_text(line(0, 3.0) + line(1, 2.0))
    assert values(read()) == [(0, 3.0), (1, 2.0)]


def test_a_later_attempt_replaces_the_steps_that_it_repeats(output: Path, read: Read) -> None:
    (output / "curves.jsonl").write_text(line(0, 3.0) + line(1, 2.0) + line(1, 1.5, 2) + line(2, 1.0, 2))
    found = read()
    assert values(found) == [(0, 3.0), (1, 1.5), (2, 1.0)]
    assert found.curves[0].count == 3


def test_a_file_that_was_written_anew_begins_anew(output: Path, read: Read) -> None:
    path = output / "curves.jsonl"
    path.write_text(line(0, 3.0) + line(1, 2.0))
    read()
    path.write_text(line(0, 9.0))
    assert values(read()) == [(0, 9.0)]


def test_a_look_at_very_many_tiny_lines_has_an_end(output: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line has a cost whatever its length: one look would otherwise take a minute of the processor."""
    looked_at: list[bytes] = []

    def counted(text: bytes) -> Iterator[curves.Reported]:
        looked_at.append(text)
        return curves.parse_line(text)

    monkeypatch.setattr(curve_files, "MOST_BYTES", 64 << 10)
    monkeypatch.setattr(curve_files, "LEAST_BYTES", 32, raising=False)
    monkeypatch.setattr(curve_files, "parse_line", counted)
    (output / "curves.jsonl").write_text("\n" * 10_000 + line(0, 3.0))
    assert not read().is_complete
    assert len(looked_at) == (64 << 10) // 32
    for _ in range(5):
        found = read()
    assert (values(found), found.is_complete) == ([(0, 3.0)], True)


def test_event_files_of_one_directory_are_one_run(output: Path, read: Read) -> None:
    (output / "logs").mkdir()
    (output / "logs" / "events.out.tfevents.1.host").write_bytes(records(event(0, 1.0, "loss", 4.0)))
    (output / "logs" / "events.out.tfevents.2.host").write_bytes(records(event(1, 2.0, "loss", 2.0))[:-3])
    assert values(read()) == [(0, 4.0)], "a record that is still being written is left for later"
    (output / "logs" / "events.out.tfevents.2.host").write_bytes(records(event(1, 2.0, "loss", 2.0)))
    assert values(read()) == [(0, 4.0), (1, 2.0)]


def test_several_directories_are_several_runs(output: Path, read: Read) -> None:
    for run in ("train", "val"):
        (output / run).mkdir()
        (output / run / "events.out.tfevents.1.host").write_bytes(records(event(0, 1.0, "loss", 4.0)))
    assert [curve.name for curve in read().curves] == ["train/loss", "val/loss"]


def test_long_records_are_skipped_and_reading_goes_on(output: Path, read: Read) -> None:
    long = b"\x2a" + b"\xff\xff\x07" + b"x" * 131_071
    path = output / "events.out.tfevents.1.host"
    path.write_bytes(records(event(0, 1.0, "loss", 4.0), long, event(1, 2.0, "loss", 2.0)))
    assert values(read()) == [(0, 4.0), (1, 2.0)]


def test_a_huge_file_is_read_over_several_looks(output: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_files, "MOST_BYTES", 200)
    (output / "curves.jsonl").write_text("".join(line(step, 1.0) for step in range(8)))
    first = read()
    assert not first.is_complete
    assert len(values(first)) < 8
    while not (found := read()).is_complete:
        pass
    assert len(values(found)) == 8


def test_nothing_outside_of_the_output_directory_is_read(output: Path, read: Read, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text(line(0, 3.0))
    (output / "curves.jsonl").symlink_to(secret)
    assert read().curves == []


def test_a_job_without_curves_has_none(read: Read) -> None:
    assert read() == Curves(curves=[], is_complete=True)


def test_many_points_of_a_job_are_thinned_and_old_jobs_are_forgotten(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_files, "MOST_JOB_POINTS", 400)
    monkeypatch.setattr(curve_files, "MOST_POINTS", 500)
    workspace = DirectoryWorkspace(tmp_path)
    files = CurveFiles(DirectoryOutputs(workspace))
    for job_id in ("j-1", "j-2", "j-3"):
        workspace.prepare(job_id)
        for run in range(4):
            folder = workspace.output_dir(job_id) / f"run{run}"
            folder.mkdir()
            events = [event(step, 1.0, name, float(step)) for step in range(100) for name in ("loss", "rate")]
            (folder / "events.out.tfevents.1.host").write_bytes(records(*events))
        found = files.read(job_id)
        assert len(found.curves) == 8
        assert {curve.count for curve in found.curves} == {100}
        assert sum(len(curve.points) for curve in found.curves) <= 400
        for curve in found.curves:
            assert (curve.points[0].step, curve.points[-1].step) == (0, 99), "both ends are kept"
        assert sum(job.points for job in files._jobs.values()) <= 500
    assert list(files._jobs) == ["j-3"]


def test_all_files_of_a_job_together_are_read_a_part_at_a_look(
    output: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in range(10):
        (output / f"run{run}").mkdir()
        events = [event(step, 1.0, "loss", float(step)) for step in range(100)]
        (output / f"run{run}" / "events.out.tfevents.1.host").write_bytes(records(*events))
    monkeypatch.setattr(curve_files, "MOST_BYTES", 10_000)
    first = read()
    assert not first.is_complete
    assert sum(curve.count for curve in first.curves) < 1000 / 4
    while not (found := read()).is_complete:
        pass
    assert [curve.count for curve in found.curves] == [100] * 10


def test_a_line_without_an_end_does_not_stop_the_reading(
    output: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_files, "MOST_BYTES", 100)
    (output / "curves.jsonl").write_text("x" * 1000 + "\n" + line(0, 3.0))
    while not (found := read()).is_complete:
        pass
    assert values(found) == [(0, 3.0)]
