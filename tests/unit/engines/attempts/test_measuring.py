"""The disk use of directories, for any content that a job has created."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.checkpoint.layout import last_of
from corral.files.usage import MAX_DEPTH, DiskUse, TooDeep, measure_steps, used_bytes

MIB = 1 << 20


def measured(*paths: Path) -> DiskUse:
    return last_of(measure_steps([str(path) for path in paths]))


def test_blocks_count_and_holes_do_not(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "full").write_bytes(b"x" * MIB)
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(1 << 40)
    use = measured(tmp_path)
    assert MIB <= use.bytes < 2 * MIB
    assert use.files == 3


def test_a_file_with_several_names_counts_once_and_links_lead_nowhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "large").write_bytes(b"x" * 8 * MIB)
    (inside / "one").write_bytes(b"x" * MIB)
    os.link(inside / "one", inside / "two")
    (inside / "link").symlink_to(outside)
    assert MIB <= measured(inside).bytes < 2 * MIB
    assert measured(inside, outside).bytes > 9 * MIB
    assert measured(inside / "link").bytes == 0, "the place itself may have been replaced"


def test_nothing_hides_behind_a_long_path(tmp_path: Path) -> None:
    before = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("large").write_bytes(b"x" * MIB)
    finally:
        os.chdir(before)
    assert measured(tmp_path).bytes >= MIB


def test_a_tree_that_is_too_deep_is_said(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "/".join("d" * (MAX_DEPTH + 1)))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TooDeep, match=str(MAX_DEPTH)):
        measured(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_missing_directory_counts_as_empty_unless_it_is_required(tmp_path: Path) -> None:
    assert measured(tmp_path / "none") == DiskUse(bytes=0, files=0)
    with pytest.raises(FileNotFoundError):
        used_bytes(str(tmp_path / "none"))
