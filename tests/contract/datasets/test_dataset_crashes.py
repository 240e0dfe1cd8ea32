"""kill -9 in the middle of a commit, a checkout, an update, a collection: what is visible is whole, and another run
finishes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corral.datasets import Progress, Repository
from corral.datasets.history.leases import LEASE_SECONDS
from tests.unit.datasets.trees_of_files import noise, read_files, repository_in, write_files

pytestmark = pytest.mark.slow

SMALL = {f"d{n % 7}/{n:03d}": noise(200 + n, n) for n in range(60)}
FIRST = {**SMALL, "large": noise(40 << 20, 1000)}
SECOND = {**SMALL, "large": noise(8 << 20, 1000) + noise(4 << 20, 1001), "d0/000": b"changed", "new/dir": None}


def run(what: str, folder: Path, kill_at: int = 0) -> int:
    command = [sys.executable, "-m", "tests.contract.dataset_crash", what, str(folder), str(kill_at)]
    return subprocess.run(command, check=False, cwd=Path(__file__).parents[3]).returncode


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with two versions, and one that is gone."""
    folder = tmp_path_factory.mktemp("prepared")
    repository = repository_in(folder)
    work = write_files(folder / "work", FIRST)
    repository.commit("faces", work, message="first", author="ada")
    gone = write_files(folder / "gone", {**SMALL, "other": noise(2 << 20, 2000)})
    repository.commit("gone", gone, message="m", author="ada")
    repository.remove("gone")
    repository.tag("faces", "first")
    write_files(work, SECOND)
    repository.commit("faces", work, message="second", author="ada")
    repository.tag("faces", "wanted")
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    # At the same place for the store of versions: a storage knows whose it is.
    for name in ("blobs", "versions", "work"):
        shutil.copytree(prepared / name, tmp_path / name)
    (tmp_path / "blobs/format.json").unlink()
    return tmp_path


def check_all_is_well(repository: Repository, versions: int) -> None:
    verified = repository.verify()
    assert (verified.damages, verified.versions) == ((), versions)


@pytest.mark.parametrize("kill_at", [1, 2, 4, 6, 9])
def test_a_commit_that_was_killed(folder: Path, kill_at: int) -> None:
    write_files(folder / "work", {"large": noise(40 << 20, 3000), "d1/001": b"third"})
    assert run("commit", folder, kill_at) == -signal.SIGKILL
    repository = repository_in(folder)
    check_all_is_well(repository, 2)
    seen: list[Progress] = []
    made = repository.commit("faces", folder / "work", message="m", author="ada", on_progress=seen.append)
    assert made.created
    if kill_at == 9:
        # Two of the three packs were there already, one of them with pieces of the large file.
        assert made.commit.new_bytes < 34 << 20
    check_all_is_well(repository, 3)
    repository.checkout("faces", "latest", folder / "copy")
    assert read_files(folder / "copy") == read_files(folder / "work")


@pytest.mark.parametrize("kill_at", [1, 20, 62])
def test_a_checkout_that_was_killed(folder: Path, kill_at: int) -> None:
    assert run("checkout", folder, kill_at) == -signal.SIGKILL
    assert not (folder / "copy").exists()
    seen: list[Progress] = []
    repository_in(folder).checkout("faces", "wanted", folder / "copy", on_progress=seen.append)
    assert read_files(folder / "copy") == read_files(folder / "work")
    # What was written is not fetched again.
    assert kill_at == 1 or seen[-1].bytes_kept > 0
    assert seen[-1].bytes_done == seen[-1].bytes_total
    assert not [name for name in os.listdir(folder) if name.startswith(".copy")]


def test_an_update_that_was_killed(folder: Path) -> None:
    repository = repository_in(folder)
    repository.checkout("faces", "first", folder / "copy")
    assert run("update", folder, kill_at=3) == -signal.SIGKILL
    left = read_files(folder / "copy")
    assert set(left) == set(FIRST)
    repository.checkout("faces", "wanted", folder / "copy", update=True)
    assert read_files(folder / "copy") == read_files(folder / "work")


@pytest.mark.parametrize("kill_at", [1, 2, 3, 4, 5, 6])
def test_a_collection_that_was_killed(folder: Path, kill_at: int) -> None:
    before = repository_in(folder).collect_garbage(grace_seconds=-1)
    assert before.garbage_bytes > 2 << 20
    assert run("collect", folder, kill_at) == -signal.SIGKILL
    repository = repository_in(folder)
    check_all_is_well(repository, 2)
    # A commit comes between the killed one and the next: it may need what is about to go.
    write_files(folder / "again", {**SMALL, "other": noise(2 << 20, 2000)})
    repository.commit("again", folder / "again", message="m", author="ada")
    repository.collect_garbage(dry_run=False, grace_seconds=LEASE_SECONDS)
    repository.collect_garbage(dry_run=False, grace_seconds=-1)
    check_all_is_well(repository, 3)
    assert repository.collect_garbage(grace_seconds=-1).garbage == ()
    repository.checkout("again", "latest", folder / "copy")
    assert read_files(folder / "copy") == read_files(folder / "again")


@pytest.mark.parametrize("delay", [0.3, 0.6])
def test_killed_at_any_moment(folder: Path, delay: float) -> None:
    """Not where we thought of, but where it happens to be."""
    write_files(folder / "work", {"large": noise(40 << 20, 3000)})
    for what in ("commit", "checkout", "collect"):
        command = [sys.executable, "-m", "tests.contract.dataset_crash", what, str(folder)]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[3])
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert repository_in(folder).verify().damages == ()
    for what in ("commit", "collect"):
        assert run(what, folder) == 0
    shutil.rmtree(folder / "copy", ignore_errors=True)
    repository = repository_in(folder)
    repository.tag("faces", "wanted")
    assert run("checkout", folder) == 0
    assert read_files(folder / "copy") == read_files(folder / "work")
