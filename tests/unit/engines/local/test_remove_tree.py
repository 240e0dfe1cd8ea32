"""Removing what a job left, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.engines.attempts.job_places import remove_tree


@pytest.mark.parametrize("depth", [3, 1_500])
def test_directories_in_each_other_without_end(tmp_path: Path, depth: int) -> None:
    """A job can make them deeper than any path is long, and deeper than Python recurses."""
    top = tmp_path / "left"
    top.mkdir()
    inside = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=inside)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
        inner = os.open("d", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = inner
    os.close(inside)
    remove_tree(str(top))
    assert not top.exists()


def test_closed_directories_and_links_are_removed_safely(tmp_path: Path) -> None:
    top, kept = tmp_path / "left", tmp_path / "kept"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").touch()
    kept.mkdir()
    (kept / "file").touch()
    (top / "link").symlink_to(kept)
    (top / "a" / "link").symlink_to(kept, target_is_directory=True)
    os.mkfifo(top / "a" / "pipe")
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0)
    remove_tree(str(top))
    assert not top.exists()
    assert (kept / "file").exists(), "links are removed, not followed"
    remove_tree(str(top))
    (tmp_path / "other").symlink_to(kept)
    remove_tree(str(tmp_path / "other"))
    assert (kept / "file").exists()
