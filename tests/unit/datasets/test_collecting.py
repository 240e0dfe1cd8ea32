"""Garbage: what is removed, what stays, and that nothing is removed that may be needed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from corral.datasets import Commit, DirectoryBlobs, HeadMoved, Repository
from corral.datasets.history.leases import LEASE_SECONDS, Lease
from tests.unit.datasets.trees_of_files import noise, read_files, repository_in, write_files


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def commit(repository: Repository, dataset: str, folder: Path) -> str:
    return repository.commit(dataset, folder, message="m", author="ada").commit.id


def test_only_what_no_version_needs_goes_and_a_dry_run_touches_nothing(tmp_path: Path, clock: Clock) -> None:
    repository = repository_in(tmp_path, clock=clock)
    commit(repository, "keep", write_files(tmp_path / "a", {"x": noise(5000, 1), "large": noise(3 << 20, 2)}))
    commit(repository, "drop", write_files(tmp_path / "b", {"y": noise(7000, 3), "large": noise(3 << 20, 2)}))
    assert repository.collect_garbage(grace_seconds=0).garbage == ()
    repository.remove("drop")
    clock.now += 100
    assert repository.collect_garbage(grace_seconds=101).garbage == ()
    dry = repository.collect_garbage(grace_seconds=100)
    assert (dry.removed_packs, dry.garbage_bytes >= 7000, len(dry.garbage)) == (0, True, 2)
    done = repository.collect_garbage(grace_seconds=100, dry_run=False)
    assert (done.removed_packs, done.removed_bytes, done.waiting_packs) == (2, dry.garbage_bytes, 0)
    assert repository.collect_garbage(grace_seconds=0).garbage == ()
    assert not any((tmp_path / "blobs/condemned").iterdir())
    assert repository.verify().damages == ()
    repository.checkout("keep", "latest", tmp_path / "copy")
    assert read_files(tmp_path / "copy") == read_files(tmp_path / "a")


def test_objects_that_a_running_commit_may_need_are_not_collected(tmp_path: Path, clock: Clock) -> None:
    repository = repository_in(tmp_path, clock=clock)
    work = write_files(tmp_path / "a", {"x": noise(5000, 1)})
    commit(repository, "drop", work)
    repository.remove("drop")
    storage = DirectoryBlobs(tmp_path / "blobs")
    with Lease(storage, clock):
        # That commit looked at the packs before they were condemned, or is about to.
        report = repository.collect_garbage(grace_seconds=0, dry_run=False)
        assert (report.removed_packs, report.waiting_packs) == (0, 2)
        # One that begins now knows, and stores again what is about to go.
        again = repository.commit("other", work, message="m", author="ada").commit
        assert again.new_bytes > 5000
    clock.now += LEASE_SECONDS + 1
    done = repository.collect_garbage(grace_seconds=0, dry_run=False)
    assert done.waiting_packs == 0
    assert repository.verify().damages == ()


def test_the_lease_of_the_dead_ends(tmp_path: Path, clock: Clock) -> None:
    repository = repository_in(tmp_path, clock=clock)
    commit(repository, "drop", write_files(tmp_path / "a", {"x": noise(5000, 1)}))
    repository.remove("drop")
    Lease(DirectoryBlobs(tmp_path / "blobs"), clock)._write()
    assert repository.collect_garbage(grace_seconds=0, dry_run=False).waiting_packs == 2
    clock.now += LEASE_SECONDS + 1
    assert repository.collect_garbage(grace_seconds=0, dry_run=False).removed_packs == 2


def test_a_pack_that_is_needed_again_is_pardoned(tmp_path: Path, clock: Clock) -> None:
    repository = repository_in(tmp_path, clock=clock)
    work = write_files(tmp_path / "a", {"x": noise(5000, 1)})
    commit(repository, "drop", work)
    repository.remove("drop")
    other = repository_in(tmp_path, clock=clock)
    other.pieces.refresh()
    storage = DirectoryBlobs(tmp_path / "blobs")
    with Lease(storage, clock) as lease:
        lease.saw(other.pieces.refresh())
        repository.collect_garbage(grace_seconds=0, dry_run=False)
        # The commit that began before relies on it: its version comes while the packs are condemned.
        tree = next(pack for pack in other.pieces.packs() if pack.kind == "meta").pieces[-1][0]
        made = Commit(dataset="late", tree=tree.hex(), parent=None, message="m", author="ada", at=clock.now)
        other.metadata.append(made, expected_parent=None, manifest=lambda: ())
    report = repository.collect_garbage(grace_seconds=0, dry_run=False)
    assert (report.removed_packs, report.garbage) == (0, ())
    assert repository.verify().damages == ()
    repository.checkout("late", "latest", tmp_path / "copy")
    assert read_files(tmp_path / "copy") == read_files(work)


def test_commits_and_collections_at_the_same_time(tmp_path: Path) -> None:
    """Datasets come, go and share pieces while garbage is collected without any grace: all that is left can be read."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(work: object) -> threading.Thread:
        def run() -> None:
            try:
                work()  # type: ignore[operator]
            except BaseException as error:  # noqa: BLE001 (reported by the test)
                failures.append(error)

        return threading.Thread(target=run)

    def committing(number: int) -> None:
        repository = Repository(
            DirectoryBlobs(tmp_path / "blobs"), repository_in(tmp_path).metadata, cache=tmp_path / f"cache{number}"
        )
        folder = tmp_path / f"work{number}"
        for turn in range(9):
            write_files(folder, {"own": noise(2000, 100 * number + turn), "shared": noise(3000, turn % 3)})
            try:
                repository.commit(f"data{number}", folder, message="m", author="ada")
                if turn % 3 == 1:
                    repository.remove(f"data{number}")
            except HeadMoved:
                continue

    def collecting() -> None:
        repository = repository_in(tmp_path)
        while not stop.is_set():
            repository.collect_garbage(grace_seconds=0, dry_run=False)

    committers = [guarded(lambda number=number: committing(number)) for number in range(3)]
    collector = guarded(collecting)
    for thread in [*committers, collector]:
        thread.start()
    for thread in committers:
        thread.join()
    stop.set()
    collector.join()
    assert failures == []
    repository = repository_in(tmp_path)
    repository.collect_garbage(grace_seconds=0, dry_run=False)
    verified = repository.verify()
    assert (verified.damages, verified.versions > 0) == ((), True)
