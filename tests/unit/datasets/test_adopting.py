"""Versions of pieces that a client has stored: made only when every piece is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.datasets import DirectoryBlobs, DirectoryVersions, HeadMoved, Repository
from corral.datasets.work.adoption import Incomplete, adopt


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "inner").mkdir(parents=True)
    (folder / "small").write_text("small")
    (folder / "inner" / "large").write_bytes(bytes(range(256)) * 12_000)
    (folder / "empty").touch()
    return folder


def opened(root: Path, versions: str = "versions") -> Repository:
    return Repository(DirectoryBlobs(root / "blobs"), DirectoryVersions(root / versions))


def test_a_tree_that_is_all_there_becomes_a_version_once(tmp_path: Path, source: Path) -> None:
    made = opened(tmp_path).commit("first", source, message="", author="ann").commit
    done = adopt(opened(tmp_path), "second", made.tree, message="mine", author="bob")
    assert done.created
    assert (done.commit.tree, done.commit.files, done.commit.bytes) == (made.tree, made.files, made.bytes)
    again = adopt(opened(tmp_path), "second", made.tree, message="mine", author="bob")
    assert (again.created, again.commit) == (False, done.commit)
    (source / "small").write_text("other")
    newer = opened(tmp_path).commit("first", source, message="", author="ann").commit
    step = adopt(opened(tmp_path), "second", newer.tree, message="", author="bob").commit
    assert step.parent == done.commit.id
    # two directories and the small file are new
    assert 0 < step.new_bytes < 1000


def test_nothing_is_made_of_a_tree_with_holes(tmp_path: Path, source: Path) -> None:
    made = opened(tmp_path).commit("first", source, message="", author="ann").commit
    packs = [path for path in (tmp_path / "blobs" / "packs").rglob("*") if path.is_file()]
    data = max(packs, key=lambda path: path.stat().st_size).name
    next((tmp_path / "blobs" / "index").rglob(data)).unlink()
    for tree in (made.tree, "0" * 64):
        with pytest.raises(Incomplete, match="missing"):
            adopt(opened(tmp_path), "second", tree, message="", author="bob")
    assert list(opened(tmp_path).metadata.log("second")) == []


def test_a_late_commit_is_refused(tmp_path: Path, source: Path) -> None:
    first = opened(tmp_path).commit("first", source, message="", author="ann").commit
    (source / "small").write_text("other")
    second = opened(tmp_path).commit("first", source, message="", author="ann").commit
    with pytest.raises(HeadMoved):
        adopt(opened(tmp_path), "first", first.tree, message="", author="bob", parent=first.id)
    assert next(iter(opened(tmp_path).metadata.log("first"))).id == second.id
