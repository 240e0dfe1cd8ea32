"""Attempts on Slurm that are over: their logs stay, and a script that starts late finds no place to claim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.control.ports import EngineUnavailable, Instance, LaunchOrder
from corral.engines.forgetting import forget_each
from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.logs import read_log, trim_log
from corral.engines.slurm.attempts.run_directory import Layout, append, folded_log, has_folded_log
from corral.engines.slurm.slurm_api.slurm_records import JobOwner
from corral.files.trash import Trash


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(str(tmp_path))
    made.prepare()
    return made


def ended(layout: Layout, attempt_id: str, *logs: str) -> None:
    append(layout.order(attempt_id), "ordered\n")
    for rank, text in enumerate(logs):
        place = layout.place(attempt_id, rank)
        os.mkdir(place)
        for name in ("instance", "claim", "told"):
            append(f"{place}/{name}", "something\n")
        if text:
            append(f"{place}/log", text)
    layout.forget(attempt_id, delete_logs=False)


def fold(layout: Layout) -> None:
    for attempt_id in layout.unfolded():
        layout.fold(attempt_id)
        layout.note_folded(attempt_id)


def test_only_logs_and_the_order_are_left(layout: Layout) -> None:
    ended(layout, "j-1.1", "hello\n", "")
    fold(layout)
    assert layout.unfolded() == []
    left = sorted(path.name for path in Path(layout.places).iterdir())
    assert left == ["j-1.1.0.log", "j-1.1.1.log"]
    assert read_log(layout.place("j-1.1", 0), 0, 100) == (b"hello\n", 6, 6)
    assert read_log(layout.place("j-1.1", 1), 0, 100) == (b"", 0, 0)
    assert layout.was_ordered("j-1.1"), "it is never ordered a second time"
    assert has_folded_log(layout.place("j-1.1", 0))


def test_folding_again_after_a_crash_changes_nothing(layout: Layout) -> None:
    ended(layout, "j-1.1", "one\n", "two\n")
    layout.fold("j-1.1")
    fold(layout)
    assert [read_log(layout.place("j-1.1", rank), 0, 100)[0] for rank in (0, 1)] == [b"one\n", b"two\n"]


def test_a_place_in_which_a_job_left_something_stays(layout: Layout) -> None:
    ended(layout, "j-1.1", "hello\n")
    append(f"{layout.place('j-1.1', 0)}/mine", "kept\n")
    fold(layout)
    assert Path(layout.place("j-1.1", 0), "mine").read_text() == "kept\n"
    assert read_log(layout.place("j-1.1", 0), 0, 100)[0] == b"hello\n"


def test_a_link_in_the_place_of_a_log_leads_nowhere(layout: Layout, tmp_path: Path) -> None:
    ended(layout, "j-1.1", "")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.symlink(secret, f"{layout.place('j-1.1', 0)}/log")
    fold(layout)
    assert read_log(layout.place("j-1.1", 0), 0, 100) == (b"", 0, 0)
    assert secret.read_text() == "secret"


def test_deleting_leaves_nothing(layout: Layout) -> None:
    ended(layout, "j-1.1", "one\n", "two\n")
    fold(layout)
    layout.forget("j-1.1", delete_logs=True)
    assert list(Path(layout.places).iterdir()) == []
    assert not layout.was_ordered("j-1.1")


def test_a_directory_in_the_place_of_a_log_is_no_log_and_is_deleted(layout: Layout) -> None:
    ended(layout, "j-1.1", "")
    os.makedirs(f"{layout.place('j-1.1', 0)}/log/inner")
    fold(layout)
    assert read_log(layout.place("j-1.1", 0), 0, 100) == (b"", 0, 0)
    layout.forget("j-1.1", delete_logs=True)
    assert list(Path(layout.places).iterdir()) == []


def test_a_directory_that_an_earlier_version_folded_as_a_log_is_deleted(layout: Layout) -> None:
    os.makedirs(f"{folded_log(layout.place('j-1.1', 0))}/inner")
    layout.forget("j-1.1", delete_logs=True)
    assert list(Path(layout.places).iterdir()) == []


@pytest.mark.parametrize("name", ["told", "claim", "log"])
def test_a_pipe_in_the_place_of_a_file_stays_until_all_is_deleted(layout: Layout, name: str) -> None:
    ended(layout, "j-1.1", "hello\n")
    path = Path(layout.place("j-1.1", 0), name)
    path.unlink()
    os.mkfifo(path)
    fold(layout)
    assert path.is_fifo()
    layout.forget("j-1.1", delete_logs=True)
    assert list(Path(layout.places).iterdir()) == []


def test_a_file_of_another_account_that_a_job_linked_as_its_log_is_neither_read_nor_folded(
    layout: Layout, tmp_path: Path
) -> None:
    ended(layout, "j-1.1", "")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.link(secret, f"{layout.place('j-1.1', 0)}/log")
    assert read_log(layout.place("j-1.1", 0), 0, 100) == (b"", 0, 0)
    fold(layout)
    assert read_log(layout.place("j-1.1", 0), 0, 100) == (b"", 0, 0)
    assert not has_folded_log(layout.place("j-1.1", 0))


def test_a_linked_log_is_not_shortened(layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = LaunchOrder(
        attempt_id="j-1.1", job_id="j-1", user="ann", command=("true",), instances=(Instance(rank=0, node="n1"),)
    )
    attempt = slurm_attempt.create(layout, order, 1.0, JobOwner())
    place = layout.place("j-1.1", 0)
    os.mkdir(place)
    data = tmp_path / "data"
    data.write_bytes(b"x" * 100_000)
    os.link(data, f"{place}/log")
    trim_log(layout, attempt, 1000)
    assert data.read_bytes() == b"x" * 100_000
    data.unlink()
    trim_log(layout, attempt, 1000)
    assert Path(place, "log").read_bytes().startswith(b"\0"), "it is the job's own again"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other accounts: run as root")
def test_a_file_of_another_account_whose_name_is_gone_is_no_log(layout: Layout) -> None:
    ended(layout, "j-1.1", "hello\n")
    place = layout.place("j-1.1", 0)
    for path in (place, f"{place}/log"):
        os.chown(path, 12345, 12345)
    assert read_log(place, 0, 100)[0] == b"hello\n"
    os.chown(f"{place}/log", 54321, 54321)
    assert read_log(place, 0, 100) == (b"", 0, 0)


def test_attempt_that_cannot_be_removed_stops_no_other(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for attempt_id in ("j-1.1", "j-2.1", "j-3.1"):
        ended(layout, attempt_id, "hello\n")
    discard = Trash.discard

    def refuses_one(trash: Trash, path: str) -> None:
        if "j-2.1" in path:
            raise PermissionError(1, "it cannot be removed", path)
        discard(trash, path)

    monkeypatch.setattr(Trash, "discard", refuses_one)
    with pytest.raises(EngineUnavailable, match=r"attempts cannot be forgotten: j-2.1: .*it cannot be removed.*j-2.1"):
        forget_each(["j-1.1", "j-2.1", "j-3.1"], lambda one: layout.forget(one, delete_logs=True))
    assert [path.name for path in Path(layout.places).iterdir()] == ["j-2.1.0"]


def test_the_environment_of_an_attempt_that_never_began_is_emptied_with_its_end(layout: Layout) -> None:
    append(layout.order("j-1.1"), "ordered\n")
    for rank in (0, 1):
        os.mkdir(layout.place("j-1.1", rank))
        append(f"{layout.place('j-1.1', rank)}/instance", "export TOKEN=secret\n")
    layout.forget("j-1.1", delete_logs=False)
    assert [Path(layout.place("j-1.1", rank), "instance").read_text() for rank in (0, 1)] == ["", ""]


def test_emptying_an_environment_follows_no_link(layout: Layout, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for attempt_id, link in (("j-1.1", os.link), ("j-2.1", os.symlink)):
        append(layout.order(attempt_id), "ordered\n")
        os.mkdir(layout.place(attempt_id, 0))
        link(victim, f"{layout.place(attempt_id, 0)}/instance")
        layout.forget(attempt_id, delete_logs=False)
    assert victim.read_text() == "kept"
