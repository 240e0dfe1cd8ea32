"""Directories are removed in the background, and nothing of them is left behind."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from corral.files import trash
from corral.files.trash import Trash
from tests.unit.control.world import eventually


def filled(path: Path) -> Path:
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "file").write_text("text")
    return path


def test_a_discarded_directory_is_gone_at_once_and_its_files_soon(tmp_path: Path) -> None:
    bin_ = Trash(tmp_path / "removed")
    for name in ("one", "two"):
        bin_.discard(filled(tmp_path / name))
        assert not (tmp_path / name).exists()
    eventually(lambda: list((tmp_path / "removed").iterdir()) == [])


def test_the_caller_does_not_wait_for_the_removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, removed = threading.Event(), []

    def slow(path: str) -> bool:
        may_go_on.wait(30)
        removed.append(path)
        return True

    monkeypatch.setattr(trash, "remove_tree", slow)
    bin_ = Trash(tmp_path / "removed")
    bin_.discard(filled(tmp_path / "one"))
    bin_.discard(filled(tmp_path / "two"))
    assert removed == []
    may_go_on.set()
    eventually(lambda: len(removed) == 2)


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path: Path) -> None:
    filled(tmp_path / "removed" / "left")
    Trash(tmp_path / "removed").empty()
    eventually(lambda: list((tmp_path / "removed").iterdir()) == [])


def test_a_path_that_does_not_exist_is_ignored(tmp_path: Path) -> None:
    Trash(tmp_path / "removed").discard(tmp_path / "nothing")
    assert not (tmp_path / "removed").exists()


def test_a_directory_that_cannot_be_moved_is_removed_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "removed").write_text("no directory")
    Trash(tmp_path / "removed").discard(filled(tmp_path / "one"))
    assert not (tmp_path / "one").exists()
