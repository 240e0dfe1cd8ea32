"""The contract of every store of versions. A new store adds a line to STORES."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from corral.datasets import (
    BadName,
    Commit,
    Damaged,
    DirectoryBlobs,
    DirectoryVersions,
    Entry,
    GitFailed,
    GitVersions,
    HeadMoved,
    NotFound,
    PathEntry,
    Repository,
    VersionStore,
)

FILES = (
    PathEntry(path="d", entry=Entry(name="d", kind="dir", digest=b"\1" * 32)),
    PathEntry(path="d/a b", entry=Entry(name="a b", kind="file", size=7, digest=b"\2" * 32)),
    PathEntry(path="large", entry=Entry(name="large", kind="file", size=9_000_000, digest=b"\3" * 32, listed=True)),
    PathEntry(path="link", entry=Entry(name="link", kind="link", target="d/a b")),
)


def _git(folder: Path) -> VersionStore:
    remote = folder / "remote.git"
    if not remote.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    # Another cache each time: as another machine sees it.
    return GitVersions(f"file://{remote}", cache=folder / f"clone-{os.urandom(4).hex()}")


#: by name: how to open a store over a directory; opened again it is the same store, as another process sees it
STORES: dict[str, Callable[[Path], VersionStore]] = {
    "directory": lambda folder: DirectoryVersions(folder / "versions"),
    "git": _git,
}


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], VersionStore]:
    return lambda: STORES[request.param](tmp_path)


def a_commit(dataset: str = "faces", parent: Commit | None = None, message: str = "first") -> Commit:
    return Commit(
        dataset=dataset,
        tree="ab" * 32,
        parent=parent.id if parent else None,
        message=message,
        author="Ada <ada>",
        at=1_700_000_000.5,
        job="j-12",
        files=2,
        bytes=9_000_007,
        new_bytes=123,
    )


def append(store: VersionStore, commit: Commit) -> None:
    store.append(commit, expected_parent=commit.parent, manifest=lambda: FILES)


def test_a_history_and_its_tags(opened: Callable[[], VersionStore]) -> None:
    store = opened()
    assert (store.datasets(), list(store.log("faces")), store.tags("faces")) == ([], [], {})
    first = a_commit()
    second = a_commit(parent=first, message="second: 数据\n\nwith a body")
    append(store, first)
    append(store, second)
    append(store, a_commit("ada/voices"))
    other = opened()
    assert other.identity == store.identity
    assert other.datasets() == ["ada/voices", "faces"]
    assert list(other.log("faces")) == [second, first]
    assert other.get("faces", first.id) == first
    other.tag("faces", "good", first.id)
    other.tag("faces", "v1.0", first.id)
    other.tag("faces", "good", second.id)
    assert store.tags("faces") == {"good": second.id, "v1.0": first.id}
    store.untag("faces", "good")
    assert other.tags("faces") == {"v1.0": first.id}


def test_missing_objects_are_reported(opened: Callable[[], VersionStore]) -> None:
    store = opened()
    append(store, a_commit())
    for wrong in (
        lambda: store.get("faces", "cd" * 32),
        lambda: store.get("voices", a_commit().id),
        lambda: store.tag("faces", "good", "cd" * 32),
        lambda: store.untag("faces", "good"),
        lambda: store.remove("voices"),
    ):
        with pytest.raises(NotFound):
            wrong()
    for bad in ("../up", "", "a/b/c", ".hidden", "-x", "a b"):
        with pytest.raises(BadName):
            append(store, a_commit(bad))
    with pytest.raises(BadName):
        store.tag("faces", "latest", a_commit().id)
    assert store.datasets() == ["faces"]


def test_only_one_follows_another(opened: Callable[[], VersionStore]) -> None:
    store = opened()
    first = a_commit()
    append(store, first)
    append(store, first)  # it is done: nothing more happens
    with pytest.raises(HeadMoved) as moved:
        append(store, a_commit(message="another first"))
    assert (moved.value.expected, moved.value.found) == (None, first.id)
    assert list(store.log("faces")) == [first]


def test_one_of_many_simultaneous_commits_wins_and_other_datasets_go_on(opened: Callable[[], VersionStore]) -> None:
    first = a_commit()
    append(opened(), first)
    outcomes: list[str] = []

    def compete(number: int) -> None:
        store = opened()
        try:
            append(store, a_commit(parent=first, message=f"by {number}"))
            outcomes.append("won")
        except HeadMoved:
            outcomes.append("lost")
        append(store, a_commit(f"own{number}"))

    threads = [threading.Thread(target=compete, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost", "lost", "won"]
    store = opened()
    assert len(list(store.log("faces"))) == 2
    assert store.datasets() == ["faces", "own0", "own1", "own2"]


def test_a_dataset_that_is_made_anew_has_nothing_of_the_old_one(opened: Callable[[], VersionStore]) -> None:
    store = opened()
    first = a_commit()
    append(store, first)
    store.tag("faces", "good", first.id)
    store.remove("faces")
    assert (store.datasets(), list(store.log("faces")), store.tags("faces")) == ([], [], {})
    with pytest.raises(NotFound):
        store.get("faces", first.id)
    anew = a_commit(message="anew")
    append(store, anew)
    assert (list(store.log("faces")), store.tags("faces")) == ([anew], {})


def plain_git(remote: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "--git-dir", str(remote), *arguments], check=True, capture_output=True, text=True
    ).stdout


def test_the_history_can_be_read_with_plain_git(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    versions = GitVersions(f"file://{remote}", cache=tmp_path / "clones", branch="data")
    repository = Repository(DirectoryBlobs(tmp_path / "blobs"), versions)
    work = tmp_path / "work"
    (work / "in").mkdir(parents=True)
    (work / "in/a.txt").write_text("hello")
    first = repository.commit("faces", work, message="first faces", author="ada").commit
    (work / "b.txt").write_text("more")
    second = repository.commit("faces", work, message="more faces", author="bob", job="j-3").commit
    repository.tag("faces", "v1", first.id)
    assert plain_git(remote, "log", "--format=%an: %s", "data").splitlines() == ["bob: more faces", "ada: first faces"]
    record = plain_git(remote, "show", "data:faces/dataset.yaml")
    assert f"version: {second.id}" in record
    assert "job: j-3" in record
    listed = [line.split() for line in plain_git(remote, "show", "data:faces/files.txt").splitlines()]
    assert [(line[0], line[2]) for line in listed] == [("4", "b.txt"), ("5", "in/a.txt")]
    # The digest of a small file is what b2sum says of it.
    digest = subprocess.run(["b2sum", "-l", "256", str(work / "in/a.txt")], capture_output=True, text=True, check=True)
    assert listed[1][1] == digest.stdout.split()[0]
    assert "Version: " + first.id in plain_git(remote, "show", "-s", "faces/v1")
    repository.checkout("faces", "v1", tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").rglob("*")] == ["in", "a.txt"]


def test_a_manual_change_in_git_is_not_trusted(tmp_path: Path) -> None:
    store = _git(tmp_path)
    append(store, a_commit())
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "-b", "main", str(tmp_path / "remote.git"), str(clone)], check=True)
    record = clone / "faces/dataset.yaml"
    record.write_text(record.read_text().replace("ab" * 32, "cd" * 32))
    who = ["-c", "user.name=eve", "-c", "user.email=eve"]
    subprocess.run(["git", "-C", str(clone), *who, "commit", "--quiet", "-am", "better"], check=True)
    subprocess.run(["git", "-C", str(clone), "push", "--quiet"], check=True)
    with pytest.raises(Damaged, match="changed after it was made"):
        list(store.log("faces"))


def test_the_token_is_in_no_argument_file_or_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program called git in front of the real one writes down what it was given."""
    seen = tmp_path / "seen"
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    fake.write_text(
        f'#!/bin/sh\necho "$*" >> {seen}\n'
        'case "$*" in *fetch*) '
        f"printf 'protocol=https\\nhost=forge.example\\n\\n' | {real} credential fill >> {tmp_path / 'answer'};"
        ' echo "fatal: no, $CORRAL_GIT_TOKEN" >&2; exit 1;; esac\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    store = GitVersions("https://forge.example/team/data.git", cache=tmp_path / "clones", token="s3cr3t")
    with pytest.raises(GitFailed, match=r"no, \*\*\*"):
        store.datasets()
    assert "password=s3cr3t" in (tmp_path / "answer").read_text()
    assert "s3cr3t" not in seen.read_text() + repr(store) + store.identity
    assert not [path for path in (tmp_path / "clones").rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]
    with pytest.raises(BadName, match="password"):
        GitVersions("https://me:s3cr3t@forge.example/data.git", cache=tmp_path)
    for bad in ("ext::sh -c date", "--upload-pack=date", "data"):
        with pytest.raises(BadName):
            GitVersions(bad, cache=tmp_path)


def test_a_commit_is_what_its_id_says() -> None:
    commit = a_commit()
    assert replace(commit, message="another").id != commit.id
    assert Commit.from_dict(commit.to_dict(), expected_id=commit.id) == commit
