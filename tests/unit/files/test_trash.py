"""Directories are removed in the background, and nothing of them is left behind."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
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


def test_trash_of_a_killed_server_is_removed_by_the_next(tmp_path: Path) -> None:
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


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def a_deep_tree(path: Path) -> None:
    path.mkdir()
    held = os.open(path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("inner-directory", dir_fd=held)
        inner = os.open("inner-directory", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)


def an_unreadable_tree(path: Path) -> None:
    filled(path)
    (path / "inner").chmod(0)
    path.chmod(0)


KINDS: dict[str, Callable[[Path], object]] = {
    "file": Path.touch,
    "link": lambda path: path.symlink_to("/etc"),
    "broken link": lambda path: path.symlink_to("/no/such/file"),
    "pipe": os.mkfifo,
    "socket": a_socket,
    "empty directory": Path.mkdir,
    "directory": filled,
    "deep tree": a_deep_tree,
    "unreadable tree": an_unreadable_tree,
}


@pytest.mark.parametrize("has_trash", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_anything_that_a_job_can_make_is_removed(kind: str, has_trash: bool, tmp_path: Path) -> None:
    KINDS[kind](tmp_path / "one")
    if not has_trash:
        (tmp_path / "removed").write_text("no directory")
    Trash(tmp_path / "removed").discard(tmp_path / "one")
    assert not os.path.lexists(tmp_path / "one")
    if has_trash:
        eventually(lambda: list((tmp_path / "removed").iterdir()) == [])


def test_directory_that_cannot_be_moved_or_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imitates an immutable directory, or one on which something is mounted."""

    def refuse(*args: object, **more: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    kept = filled(tmp_path / "one")
    for call in ("rename", "unlink", "rmdir"):
        monkeypatch.setattr(os, call, refuse)
    with pytest.raises(PermissionError, match=r"it cannot be removed .Operation not permitted.*/one"):
        Trash(tmp_path / "removed").discard(kept)
    monkeypatch.undo()
    assert (kept / "inner" / "file").exists()


def test_entries_that_stay_in_the_trash_are_logged_and_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trash, "remove_tree", lambda path: False)
    bin_ = Trash(tmp_path / "removed")
    bin_.discard(filled(tmp_path / "one"))
    eventually(lambda: "cannot be removed as a whole" in caplog.text)
    monkeypatch.undo()

    def is_empty() -> bool:
        bin_.empty()
        return not list((tmp_path / "removed").iterdir())

    eventually(is_empty)
