"""Attempts on Slurm that are over: their logs stay, and a script that starts late finds no place to claim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.engines.slurm.attempts.logs import read_log
from corral.engines.slurm.attempts.run_directory import Layout, append, has_folded_log


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
