"""Versions of datasets on a node: checked out once, used by many, never used when they are not as they were."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.datasets import Commit, DirectoryBlobs, DirectoryVersions, Repository
from corral.engines.attempts.claims import CLAIM
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.storage import job_mounts, mount_namespace
from corral.engines.storage.datasets import DatasetProvider
from corral.engines.storage.provider import CannotProvide, Surroundings


class Node:
    """A storage with versions, and a cache that holds as much as a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs = root / "blobs"
        self.repository = Repository(DirectoryBlobs(self.blobs), DirectoryVersions(root / "versions"))
        self.cache = root / "cache"
        self.said: list[str] = []
        self.most_bytes = 1 << 30

    def commit(self, name: str, **files: str) -> Commit:
        source = self.root / "source" / name
        source.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (source / file).write_text(text)
        return self.repository.commit(name, source, message="", author="ann").commit

    def provide(self, commit: Commit, attempt: str = "j-1.1", mark: Path | None = None) -> Path:
        rank_dir = mark or self.root / "attempts" / attempt / "0"
        if mark is None:
            rank_dir.mkdir(parents=True, exist_ok=True)
        around = Surroundings(
            attempt_id=attempt,
            rank_dir=str(rank_dir),
            scratch="",
            places={"datasets": str(self.cache), "dataset_bytes": self.most_bytes},
            say=self.said.append,
            progress=lambda words: None,
        )
        access = {
            "storage": json.dumps({"kind": "directory", "path": str(self.blobs)}),
            "tree": commit.tree,
            "name": commit.dataset,
        }
        spec = StorageSpec(
            kind="dataset",
            name=commit.dataset,
            path="/data",
            read_only=True,
            source="",
            link="DATA",
            id="d-1",
            version=commit.id,
            size_bytes=0,
            prefetch=False,
            access=access,
        )
        return Path(DatasetProvider().provide(spec, around))

    def checkouts(self) -> set[str]:
        return {path.name.partition(".")[0] for path in self.cache.glob("*.json")}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    # Read-only directories would keep pytest from tidying up.
    for where, _, _ in os.walk(tmp_path):
        os.chmod(where, 0o700)


def test_a_version_is_checked_out_once_and_cannot_be_written(node: Node) -> None:
    commit = node.commit("digits", one="1", two="22")
    place = node.provide(commit)
    assert {path.name: path.read_text() for path in place.iterdir()} == {"one": "1", "two": "22"}
    assert {oct(path.stat().st_mode & 0o777) for path in (place / "one", place)} == {"0o444", "0o555"}
    written = (place / "one").stat().st_ctime_ns
    assert node.provide(commit, "j-2.1") == place
    assert (place / "one").stat().st_ctime_ns == written


def change(place: Path) -> None:
    os.chmod(place / "one", 0o644)
    (place / "one").write_text("2")


def test_changed_checkout_is_removed_and_made_anew(node: Node) -> None:
    commit = node.commit("digits", one="1")
    change(node.provide(commit))
    second = node.provide(commit, "j-2.1")
    assert (second / "one").read_text() == "1"
    assert any("was changed" in words for words in node.said)
    assert [path.name for path in node.cache.glob(f"{commit.id}.?")] == [second.name]


def test_changed_checkout_in_use_is_removed_after_its_users(node: Node) -> None:
    commit, other = node.commit("digits", one="1"), node.commit("letters", one="a")
    mark = node.root / "j-1.1"
    mark.touch()
    first = node.provide(commit, "j-1.1", mark)
    change(first)
    second = node.provide(commit, "j-2.1")
    assert second != first
    assert ((first / "one").read_text(), (second / "one").read_text()) == ("2", "1")
    assert node.provide(commit, "j-3.1") == second
    mark.unlink()
    node.provide(other, "j-4.1")
    assert not first.exists(), "the next job on the node notices that no attempt uses it"
    assert second.exists()
    assert node.checkouts() == {commit.id, other.id}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has permissions to lose: run as root")
def test_root_itself_cannot_write_where_nothing_can_be_mounted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    place = node.provide(node.commit("digits", one="1"))

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted", "a mount namespace")

    monkeypatch.setattr(mount_namespace, "enter", refused)
    spec = StorageSpec(
        kind="dataset",
        name="digits",
        path="/data",
        read_only=True,
        source=str(place),
        link="digits",
        id="d-1",
        version=place.stem,
        size_bytes=0,
        prefetch=False,
        access={},
    )
    attack = f"cat {place}/one; ! touch {place}/new && ! chmod u+w {place}/one && ! echo 2 > {place}/one"
    pid = os.fork()
    if pid == 0:
        job_mounts.enter_mounts([spec], None, "", str(node.root), node.said.append)
        os.execv("/bin/sh", ["sh", "-c", f"{attack}; [ $? = 0 ]"])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (place / "one").read_text() == "1"


def test_damaged_file_is_named_and_leaves_no_checkout(node: Node) -> None:
    commit = node.commit("digits", one="1" * 1000)
    for pack in (node.blobs / "packs").rglob("*"):
        if pack.is_file() and pack.stat().st_size == 1000:
            pack.write_bytes(b"2" * 1000)
            break
    with pytest.raises(CannotProvide, match=rf"{pack.name}.*one") as refusal:
        node.provide(commit)
    assert commit.id[:12] in str(refusal.value)
    assert not list(node.cache.glob(f"{commit.id}.?"))


def test_unused_versions_go_the_oldest_first_and_used_ones_stay(node: Node) -> None:
    commits = [node.commit(f"set{number}", file=str(number) * 1000) for number in range(4)]
    node.most_bytes = 2500
    held = node.root / "attempts" / "j-0.1" / "0"
    held.mkdir(parents=True)
    with (held / CLAIM).open("w") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX)
        places = []
        for number, commit in enumerate(commits):
            places.append(node.provide(commit, f"j-{number}.1"))
            # Each is asked for a second later than the one before.
            os.utime(places[-1].with_name(f"{places[-1].name}.json"), (number, number))
    # The first one is oldest, but an attempt has it.
    assert node.checkouts() == {commits[0].id, commits[3].id}
    assert (places[0] / "file").read_text() == "0" * 1000
    assert not places[1].exists()
    # When that attempt is over it goes like others.
    node.most_bytes = 1500
    node.provide(commits[3])
    assert node.checkouts() == {commits[3].id}


def test_an_engine_without_claims_leaves_a_mark_for_as_long_as_it_knows_the_attempt(node: Node) -> None:
    first, second, third = (node.commit(f"set{number}", one=str(number) * 1000) for number in range(3))
    mark = node.root / "j-1.1"
    mark.touch()
    node.most_bytes = 1500
    node.provide(first, "j-1.1", mark)
    node.provide(second, "j-2.1")
    assert first.id in node.checkouts(), "it is used, although it was asked for longest ago"
    mark.unlink()
    node.provide(third, "j-3.1")
    assert node.checkouts() == {third.id}
