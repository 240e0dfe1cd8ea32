"""Versions of files, as stories: commit, look, check out, change, and what happens when something is wrong."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from corral.datasets import (
    AnotherOwner,
    Damaged,
    DatasetError,
    DirectoryBlobs,
    DirectoryVersions,
    HeadMoved,
    LocalChanges,
    NotFound,
    NotPlain,
    Progress,
    Repository,
    Unstable,
    check_pack,
)
from corral.datasets.content.chunker import cuts_of
from corral.datasets.content.packs import encode_index
from corral.datasets.history.records import digest_of, encode_list
from corral.datasets.work.scan import Opener, Stamp, open_root, scan
from corral.datasets.work.working_index import KnownFile, index_path, save_index
from tests.unit.datasets.trees_of_files import Files, noise, read_files, repository_in, write_files

STORY: Files = {
    "readme.txt": b"hello",
    "empty": b"",
    "bin/run": ("x", b"#!/bin/sh\n"),
    "data/a/1.bin": b"\0" * 10,
    "data/link": ("->", "a/1.bin"),
    "data/outside": ("->", "/etc/passwd"),
    "nothing/here": None,
    os.fsdecode(b"odd \xff\n name"): b"odd",
    "large.bin": noise(3_000_000),
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return repository_in(tmp_path)


def commit(repository: Repository, folder: Path, message: str = "m") -> str:
    return repository.commit("faces", folder, message=message, author="ada").commit.id


def test_committed_files_are_checked_out_unchanged(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", STORY)
    made = repository.commit("faces", work, message="first", author="ada", job="j-7")
    repository.checkout("faces", "latest", tmp_path / "copy")
    assert made.created
    assert read_files(tmp_path / "copy") == dict(STORY)
    assert (made.commit.files, made.commit.job, made.commit.parent) == (6, "j-7", None)
    assert made.commit.bytes == 5 + 10 + 10 + 3 + 3_000_000
    some = repository.read("faces", "latest", "large.bin", offset=999_999, length=7)
    assert b"".join(some) == noise(3_000_000)[999_999:1_000_006]


def test_nothing_new_makes_no_version(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", STORY)
    first = commit(repository, work)
    again = repository.commit("faces", work, message="again", author="ada")
    assert (again.created, again.commit.id) == (False, first)
    assert len(list(repository.log("faces"))) == 1


def test_versions_share_what_is_equal(repository: Repository, tmp_path: Path) -> None:
    data = noise(8 << 20)
    work = write_files(tmp_path / "work", {"large": data})
    commit(repository, work)
    (work / "large").write_bytes(data[: 4 << 20] + b"put in between" + data[4 << 20 :])
    write_files(work, {"copy-of-large": data})
    second = repository.commit("faces", work, message="m", author="ada").commit
    assert second.new_bytes < 1 << 20
    repository.checkout("faces", second.id, tmp_path / "copy")
    assert read_files(tmp_path / "copy") == read_files(work)


def test_diff_log_and_tags(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1", "d/b": b"22", "d/c": b"3", "e": b""})
    first = commit(repository, work, "first")
    (work / "a").unlink()
    (work / "e").unlink()
    write_files(work, {"d/b": b"4444", "n/e": b"55555", "e/f": b""})
    second = commit(repository, work, "second")
    diff = repository.diff("faces", first, second)
    assert [(c.path, c.size) for c in diff.added] == [("e", 0), ("e/f", 0), ("n", 0), ("n/e", 5)]
    assert [(c.path, c.old_size) for c in diff.removed] == [("a", 1), ("e", 0)]
    assert [(c.path, c.old_size, c.size) for c in diff.changed] == [("d/b", 2, 4)]
    assert (diff.bytes_added, diff.bytes_removed) == (9, 3)
    assert [c.message for c in repository.log("faces")] == ["second", "first"]
    repository.tag("faces", "good", first)
    assert repository.resolve("faces", "good").id == repository.resolve("faces", first[:8]).id == first
    repository.untag("faces", "good")
    with pytest.raises(NotFound, match="no version or tag good"):
        repository.resolve("faces", "good")


def test_another_commit_came_first(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1"})
    first = commit(repository, work)
    write_files(work, {"a": b"2"})
    second = commit(repository, work)
    write_files(work, {"a": b"3"})
    with pytest.raises(HeadMoved) as moved:
        repository.commit("faces", work, message="m", author="ada", parent=first)
    assert moved.value.found == second


def test_a_damaged_piece_is_named_and_nothing_appears(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"d/good": b"good", "d/bad": b"BAD BYTES"})
    version = commit(repository, work)
    assert repository.verify().damages == ()
    [pack] = [path for path in (tmp_path / "blobs/packs").rglob("*") if path.is_file() and b"BAD" in path.read_bytes()]
    pack.write_bytes(pack.read_bytes().replace(b"BAD", b"B*D"))
    with pytest.raises(Damaged, match="d/bad") as damaged:
        repository.checkout("faces", version, tmp_path / "copy")
    assert (pack.name in damaged.value.name, damaged.value.version) == (True, version)
    assert not (tmp_path / "copy").exists()
    with pytest.raises(Damaged):
        list(repository.read("faces", version, "d/bad"))
    [damage] = repository.verify("faces").damages
    assert damage.uses == {version: ("d/bad",)}
    pack.unlink()
    assert {use for damage in repository.verify().damages for use in damage.uses[version]} == {"d/good", "d/bad"}


def test_unchanged_files_are_not_read_again(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"same": b"1", "large": noise(2 << 20), "other": b"2"})
    for path in work.iterdir():
        os.utime(path, (1e9, 1e9))
    commit(repository, work)
    # Rested: as if the commit had come later than their last change.
    _let_rest(tmp_path / "cache", work)
    write_files(work, {"other": b"3"})
    seen: list[Progress] = []
    repository.commit("faces", work, message="m", author="ada", on_progress=seen.append)
    assert (seen[-1].bytes_kept, seen[-1].bytes_done, seen[-1].files_done) == (1 + (2 << 20), 2 + (2 << 20), 3)


def _let_rest(cache: Path, work: Path) -> None:
    files = {"same": KnownFile(Stamp.of((work / "same").stat()), digest_of(b"1"), listed=False)}
    data = noise(2 << 20)
    cuts = cuts_of(data, last=True)
    parts = [data[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    listed = digest_of(encode_list([(digest_of(part), len(part)) for part in parts]))
    files["large"] = KnownFile(Stamp.of((work / "large").stat()), listed, listed=True)
    save_index(index_path(cache, work), None, files, read_at_ns=1 << 62)


def test_a_file_that_changes_while_it_is_read_is_refused(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": noise(9 << 20), "b": b"2"})

    def grow(_: Progress) -> None:
        with open(work / "a", "ab") as stream:
            stream.write(b"more")

    with pytest.raises(Unstable, match="a changed while it was read"):
        repository.commit("faces", work, message="m", author="ada", on_progress=grow)
    assert repository.head("faces") is None


def test_only_files_directories_and_links_are_kept(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1"})
    os.mkfifo(work / "pipe")
    with pytest.raises(NotPlain, match="pipe"):
        commit(repository, work)


def test_a_directory_is_brought_to_another_version(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", STORY)
    first = commit(repository, work)
    (work / "readme.txt").unlink()
    (work / "empty").unlink()
    write_files(work, {"data/a/1.bin": b"new", "more/deep/x": b"x", "empty/dir": None})
    (work / "bin/run").chmod(0o644)
    second = commit(repository, work)
    copy = tmp_path / "copy"
    repository.checkout("faces", first, copy, read_only=True)
    assert not any(stat.S_IMODE(path.lstat().st_mode) & 0o222 for path in copy.rglob("*") if not path.is_symlink())
    for version, expected in ((second, read_files(work)), (first, dict(STORY)), (second, read_files(work))):
        repository.checkout("faces", version, copy, update=True)
        assert read_files(copy) == expected
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_users_work_is_not_overwritten(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1", "b": b"1"})
    first = commit(repository, work)
    write_files(work, {"a": b"2", "b": b"2"})
    second = commit(repository, work)
    copy = tmp_path / "copy"
    repository.checkout("faces", first, copy)
    with pytest.raises(DatasetError, match="not empty"):
        repository.checkout("faces", second, copy)
    write_files(copy, {"a": b"mine", "new": b"mine"})
    with pytest.raises(LocalChanges) as changes:
        repository.checkout("faces", second, copy, update=True)
    assert changes.value.paths == ("a", "new")
    assert read_files(copy) == {"a": b"mine", "b": b"1", "new": b"mine"}
    repository.checkout("faces", second, copy, update=True, force=True)
    assert read_files(copy) == {"a": b"2", "b": b"2"}


def test_a_storage_belongs_to_one_history(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1"})
    commit(repository, work)
    other = Repository(DirectoryBlobs(tmp_path / "blobs"), DirectoryVersions(tmp_path / "other"))
    with pytest.raises(AnotherOwner, match="storage of its own"):
        other.collect_garbage(dry_run=False, grace_seconds=0)
    with pytest.raises(AnotherOwner):
        other.commit("faces", work, message="m", author="ada")


def test_a_damaged_tree_is_named_with_its_version(repository: Repository, tmp_path: Path) -> None:
    version = commit(repository, write_files(tmp_path / "work", {"d/inner": b"x", "large": noise(2 << 20)}))
    [pack] = [p for p in (tmp_path / "blobs/packs").rglob("*") if p.is_file() and b"inner" in p.read_bytes()]
    pack.write_bytes(pack.read_bytes().replace(b"inner", b"outer"))
    fresh = repository_in(tmp_path)
    with pytest.raises(Damaged) as damaged:
        fresh.checkout("faces", version, tmp_path / "copy")
    assert (damaged.value.name, damaged.value.version) == (f"packs/{pack.name[:2]}/{pack.name}", version)
    with pytest.raises(Damaged, match="belongs to d/inner of version"):
        fresh.read("faces", version, "d/inner")
    with pytest.raises(Damaged):
        fresh.collect_garbage(dry_run=False, grace_seconds=-1)
    assert [damage.uses for damage in fresh.verify().damages] == [{version: ()}]


def test_a_damaged_index_of_a_working_directory_is_not_believed(repository: Repository, tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1"})
    commit(repository, work)
    [index] = (tmp_path / "cache/working").iterdir()
    index.write_bytes(index.read_bytes().replace(b"{", b"[", 1))
    write_files(work, {"a": b"2"})
    commit(repository, work)
    assert b"".join(repository.read("faces", "latest", "a")) == b"2"


def test_links_are_not_followed_while_files_are_read(tmp_path: Path) -> None:
    """Between listing and opening, files are replaced by links."""
    write_files(tmp_path / "secret", {"a": b"secret"})
    work = write_files(tmp_path / "work", {"d/a": b"public", "b": b"public"})
    with open_root(work) as root, Opener(root) as opener:
        inner, outer = sorted(scan(root).all_files(), key=lambda file: file.path, reverse=True)
        (work / "b").unlink()
        (work / "b").symlink_to(tmp_path / "secret/a")
        (work / "d/a").unlink()
        (work / "d").rmdir()
        (work / "d").symlink_to(tmp_path / "secret")
        for file in (inner, outer):
            with pytest.raises(Unstable), opener.open(file):
                pass


def test_packs_from_strangers_are_checked() -> None:
    pieces = [b"one", b"", b"three"]
    pack, index = encode_index("data", 1.0, [(digest_of(piece), len(piece)) for piece in pieces])
    check_pack(pack, index, b"".join(pieces))
    for wrong_index, wrong_data in ((index, b"oneThree"), (index, b"onethre"), (index + b"\0" * 36, b"onethree")):
        with pytest.raises(Damaged):
            check_pack(pack, wrong_index, wrong_data)
