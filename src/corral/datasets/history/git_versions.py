"""Versions in a Git repository: a commit for each, with files that users can read with plain git.

    faces/dataset.yaml   the record of the version: its id, tree, parent, author, job, sizes
    faces/files.txt      size, digest and path of everything in it

Only these small files are in Git. The repository is a bare clone in a cache; a change is pushed before it
counts.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

from corral.datasets.content.blobs import remove_tree
from corral.datasets.errors import Damaged, GitFailed, HeadMoved, NotFound, printable
from corral.datasets.history.git_program import GitProgram
from corral.datasets.history.records import Commit, PathEntry, check_dataset, check_tag
from corral.datasets.history.versions import Manifest

_RECORD = "dataset.yaml"
_FILES = "files.txt"
#: Other users push at the same time: each try begins with their changes.
_TRIES = 10
_REFUSED = ("non-fast-forward", "fetch first", "cannot lock ref", "stale info", "failed to update ref", "rejected")

Answer = TypeVar("Answer")


class GitVersions:
    """The history of datasets on one branch of a Git repository. `cache` is a directory for clones; it can be removed.

    `token` is an access token of the forge; it is passed to git in its environment, never in an argument or a file.
    """

    def __init__(self, url: str, *, cache: Path, branch: str = "main", token: str = "", user: str = "corral") -> None:
        name = hashlib.blake2b(f"{url} {branch}".encode(), digest_size=16).hexdigest()
        self._git = GitProgram(cache / f"{name}.git", url, token=token, user=user)
        self._branch = branch
        self._ref = f"refs/heads/{branch}"
        self._lock_path = cache / f"{name}.lock"
        self._thread_lock = threading.Lock()

    @property
    def identity(self) -> str:
        return f"git:{self._git.url} {self._branch}"

    def datasets(self) -> list[str]:
        with self._fetched() as head:
            return self._datasets(head)

    def log(self, dataset: str) -> Iterator[Commit]:
        with self._fetched() as head:
            return iter([commit for _, commit in self._history(head, check_dataset(dataset))])

    def get(self, dataset: str, version: str) -> Commit:
        with self._fetched() as head:
            return self._find(head, check_dataset(dataset), version)[1]

    def append(self, commit: Commit, *, expected_parent: str | None, manifest: Manifest) -> None:
        lines = list(_lines(manifest()))

        def change(head: str | None) -> str | None:
            newest = self._newest(head, check_dataset(commit.dataset))
            found = newest.id if newest is not None else None
            if found == commit.id:
                return None
            if found != expected_parent:
                raise HeadMoved(commit.dataset, expected_parent, found)
            record = yaml.safe_dump({"version": commit.id, **commit.to_dict()}, sort_keys=False, allow_unicode=True)
            files = {_RECORD: record.encode(), _FILES: b"".join(lines)}
            tree = self._tree_with(head, commit.dataset, files)
            message = f"{commit.message}\n\nDataset: {commit.dataset}\nVersion: {commit.id}\n"
            return self._commit(head, tree, message, author=commit.author, at=commit.at)

        self._change_branch(change)

    def tags(self, dataset: str) -> dict[str, str]:
        with self._fetched() as head:
            return self._tags(head, check_dataset(dataset))

    def tag(self, dataset: str, tag: str, version: str) -> None:
        with self._fetched() as head:
            git_commit, _ = self._find(head, check_dataset(dataset), version)
            self._git("push", "--quiet", "origin", f"+{git_commit}:refs/tags/{dataset}/{check_tag(tag)}")

    def untag(self, dataset: str, tag: str) -> None:
        with self._fetched() as head:
            if tag not in self._tags(head, check_dataset(dataset)):
                raise NotFound(f"{dataset} has no tag {tag}")
            self._git("push", "--quiet", "origin", f":refs/tags/{dataset}/{check_tag(tag)}")

    def remove(self, dataset: str) -> None:
        """Removes the dataset and its tags from the branch; it stays in Git's history."""

        def change(head: str | None) -> str | None:
            if self._newest(head, check_dataset(dataset)) is None:
                raise NotFound(f"there is no dataset {dataset}")
            tree = self._tree_with(head, dataset, {})
            return self._commit(head, tree, f"remove {dataset}\n", author="corral", at=None)

        with self._fetched() as head:
            tags = list(self._tags(head, check_dataset(dataset)))
        # Tags first: a new dataset of this name must not get the tags of this one.
        for tag in tags:
            self.untag(dataset, tag)
        self._change_branch(change)

    # Reading the clone

    def _datasets(self, head: str | None) -> list[str]:
        if head is None:
            return []
        paths = self._git("ls-tree", "-r", "-z", "--name-only", head).decode("utf-8", "surrogateescape").split("\0")
        return sorted(path[: -len(_RECORD) - 1] for path in paths if path.endswith(f"/{_RECORD}"))

    def _newest(self, head: str | None, dataset: str) -> Commit | None:
        """Reads only the latest record: adding to a long history needs no more."""
        if head is None:
            return None
        [data] = self._read([f"{head}:{dataset}/{_RECORD}"])
        return _decode(data) if data is not None else None

    def _history(self, head: str | None, dataset: str) -> list[tuple[str, Commit]]:
        """Git's commits and their versions, newest first, back to the creation of the dataset."""
        if head is None:
            return []
        listed = self._git.text("log", "--first-parent", "--format=%H", head, "--", f"{dataset}/{_RECORD}").split()
        history = []
        for git_commit, data in zip(listed, self._read([f"{c}:{dataset}/{_RECORD}" for c in listed]), strict=True):
            if data is None:
                break  # here an older dataset of this name was removed
            history.append((git_commit, _decode(data)))
        return history

    def _find(self, head: str | None, dataset: str, version: str) -> tuple[str, Commit]:
        for git_commit, commit in self._history(head, dataset):
            if commit.id == version:
                return git_commit, commit
        raise NotFound(f"{dataset} has no version {version}")

    def _tags(self, head: str | None, dataset: str) -> dict[str, str]:
        prefix = f"refs/tags/{dataset}/"
        listed = self._git.text("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
        by_git_commit = {git_commit: commit.id for git_commit, commit in self._history(head, dataset)} if listed else {}
        pairs = (line.rsplit(" ", 1) for line in listed)
        return {
            name[len(prefix) :]: by_git_commit[git_commit]
            for name, git_commit in pairs
            if git_commit in by_git_commit and "/" not in name[len(prefix) :]
        }

    def _read(self, names: list[str]) -> list[bytes | None]:
        """Many objects with one call of git; None for missing ones."""
        output = self._git("cat-file", "--batch", data="".join(f"{name}\n" for name in names).encode())
        found: list[bytes | None] = []
        at = 0
        for _ in names:
            end = output.index(b"\n", at)
            fields = output[at:end].split(b" ")
            at = end + 1
            if fields[-1] == b"missing":
                found.append(None)
            else:
                size = int(fields[-1])
                found.append(output[at : at + size])
                at += size + 1
        return found

    # Changing the branch

    def _change_branch(self, change: Callable[[str | None], str | None]) -> None:
        """Make a commit on top of the branch and push it, again if another push came first."""
        for attempt in range(1, _TRIES + 1):
            with self._fetched() as head:
                made = change(head)
                if made is None:
                    return
                try:
                    self._git("push", "--quiet", "origin", f"{made}:{self._ref}")
                    return
                except GitFailed as error:
                    if attempt == _TRIES or not any(word in str(error) for word in _REFUSED):
                        raise

    def _tree_with(self, head: str | None, dataset: str, files: dict[str, bytes]) -> str:
        """The tree of the branch with other files in the dataset's folder; None removes the folder."""
        index = self._git.folder / f"index-{os.urandom(8).hex()}"
        env = {"GIT_INDEX_FILE": str(index)}
        try:
            self._git("read-tree", *([head] if head is not None else ["--empty"]), env=env)
            zero, changes = "0" * 40, []
            for name in (_RECORD, _FILES):
                if name in files:
                    blob = self._git("hash-object", "-w", "--stdin", data=files[name]).decode().strip()
                    changes.append(f"100644 {blob}\t{dataset}/{name}\n")
                else:
                    changes.append(f"0 {zero}\t{dataset}/{name}\n")
            self._git("update-index", "--index-info", data="".join(changes).encode(), env=env)
            return self._git.text("write-tree", env=env)
        finally:
            index.unlink(missing_ok=True)

    def _commit(self, head: str | None, tree: str, message: str, *, author: str, at: float | None) -> str:
        name = author.translate({ord(sign): None for sign in "<>\n\0"}).strip() or "corral"
        env = {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": "",
            "GIT_COMMITTER_NAME": "corral",
            "GIT_COMMITTER_EMAIL": "",
        }
        if at is not None:
            env["GIT_AUTHOR_DATE"] = f"@{int(at)} +0000"
        parents = ["-p", head] if head is not None else []
        return self._git("commit-tree", tree, *parents, data=message.encode(), env=env).decode().strip()

    @contextmanager
    def _fetched(self) -> Iterator[str | None]:
        """The clone, updated from the repository, for one process at a time; yields the latest commit of the branch."""
        with self._thread_lock, self._locked():
            self._fetch()
            head = self._git.text(
                "rev-parse", "--quiet", "--verify", f"refs/remotes/origin/{self._branch}", allowed=(0, 1)
            )
            yield head or None

    def _fetch(self) -> None:
        if not (self._git.folder / "HEAD").is_file():
            # An incomplete clone of a killed process is not used.
            remove_tree(self._git.folder)
            self._git("init", "--quiet", "--bare", str(self._git.folder))
        self._git("config", "remote.origin.url", self._git.url)
        refs = [f"+refs/heads/{self._branch}*:refs/remotes/origin/{self._branch}*", "+refs/tags/*:refs/tags/*"]
        self._git("fetch", "--quiet", "--prune", "--no-tags", "origin", *refs)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._lock_path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _decode(data: bytes) -> Commit:
    try:
        body: Any = yaml.safe_load(data)
        version = str(body.pop("version"))
    except (yaml.YAMLError, AttributeError, KeyError) as error:
        raise Damaged(_RECORD, f"it is not the record of a version ({type(error).__name__})") from None
    return Commit.from_dict(body, expected_id=version)


def _lines(entries: Iterable[PathEntry]) -> Iterator[bytes]:
    """Size, digest and path, readable for users; a name that is not text is shown as far as possible."""
    for item in entries:
        entry, path = item.entry, printable(item.path).replace("\n", "\\n")
        if entry.kind == "dir":
            continue
        if entry.kind == "link":
            line = f"{'-':>14}  {'link':64}  {path} -> {printable(entry.target)}"
        else:
            line = f"{entry.size:>14}  {entry.digest.hex()}  {path}{' (in pieces)' if entry.listed else ''}"
        yield line.encode() + b"\n"
