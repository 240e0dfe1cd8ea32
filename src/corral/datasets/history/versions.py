"""The store of versions: the port, and its simplest implementation, files in a directory."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from corral.datasets.content.blobs import remove_tree, replace_file, sync_directory
from corral.datasets.errors import HeadMoved, NotFound
from corral.datasets.history.records import Commit, PathEntry, canonical, check_dataset, check_tag, is_version

#: Returns everything in a version, for stores that keep a readable list; called at most once per try.
Manifest = Callable[[], Iterable[PathEntry]]


class VersionStore(Protocol):
    """Keeps the history of datasets: a sequence of versions each, and tags. It never reads files of datasets.

    A dataset exists from its first version on. All methods may be called from any thread; everything is stored when a
    method returns.
    """

    @property
    def identity(self) -> str:
        """Identifies this source of metadata permanently: a storage belongs to one source. Without secrets."""

    def datasets(self) -> list[str]:
        """The names of all datasets, sorted. It must be complete: files of datasets that are not named here are
        garbage."""

    def log(self, dataset: str) -> Iterator[Commit]:
        """The versions of a dataset, newest first; empty if there is no such dataset."""

    def get(self, dataset: str, version: str) -> Commit:
        """The version with this full id. Raises `NotFound`."""

    def append(self, commit: Commit, *, expected_parent: str | None, manifest: Manifest) -> None:
        """Make it the newest version of `commit.dataset`.

        Raises `HeadMoved`, with nothing changed, unless the newest version is `expected_parent` now (None: there is
        none). If the newest version is this very commit already, it succeeds: a caller that does not know whether an
        earlier call succeeded calls again.
        """

    def tags(self, dataset: str) -> dict[str, str]:
        """Version ids by tag; empty if there is no such dataset."""

    def tag(self, dataset: str, tag: str, version: str) -> None:
        """Point a tag at a version; it may have pointed elsewhere. Raises `NotFound` for an unknown version."""

    def untag(self, dataset: str, tag: str) -> None:
        """Remove a tag. Raises `NotFound` if there is none."""

    def remove(self, dataset: str) -> None:
        """Removes the dataset with its versions and tags; its files become garbage. Raises `NotFound`."""


class DirectoryVersions:
    """Versions as small files, one directory per dataset: for a disk, for tests, and without a server."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)

    @property
    def identity(self) -> str:
        return f"directory:{self._root.resolve()}"

    def datasets(self) -> list[str]:
        folders = self._root.iterdir() if self._root.is_dir() else ()
        return sorted(
            folder.name.replace("%", "/") for folder in folders if folder.name[0] != "." and (folder / "head").is_file()
        )

    def log(self, dataset: str) -> Iterator[Commit]:
        while True:
            head = version = self._head(dataset)
            try:
                commits = []
                while version is not None:
                    commits.append(self.get(dataset, version))
                    version = commits[-1].parent
                return iter(commits)
            except NotFound:
                if self._head(dataset) == head:
                    raise
                # Removed while it was read, and maybe created again: read again.

    def get(self, dataset: str, version: str) -> Commit:
        path = self._folder(dataset) / "versions" / version
        try:
            data = path.read_bytes() if is_version(version) else None
        except (FileNotFoundError, NotADirectoryError):
            data = None
        if data is None:
            raise NotFound(f"{dataset} has no version {version}")
        return Commit.from_dict(json.loads(data), expected_id=version)

    def append(self, commit: Commit, *, expected_parent: str | None, manifest: Manifest) -> None:
        folder = self._folder(commit.dataset)
        with self._locked(commit.dataset):
            head = self._head(commit.dataset)
            if head == commit.id:
                return
            if head != expected_parent:
                raise HeadMoved(commit.dataset, expected_parent, head)
            # The version first: a head never points at a missing version.
            replace_file(folder / "versions" / commit.id, canonical(commit.to_dict()))
            replace_file(folder / "head", commit.id.encode())

    def tags(self, dataset: str) -> dict[str, str]:
        folder = self._folder(dataset) / "tags"
        return {path.name: path.read_text() for path in sorted(folder.glob("[!.]*"))} if folder.is_dir() else {}

    def tag(self, dataset: str, tag: str, version: str) -> None:
        self.get(dataset, version)
        replace_file(self._folder(dataset) / "tags" / check_tag(tag), version.encode())

    def untag(self, dataset: str, tag: str) -> None:
        path = self._folder(dataset) / "tags" / check_tag(tag)
        if not path.is_file():
            raise NotFound(f"{dataset} has no tag {tag}")
        path.unlink(missing_ok=True)
        sync_directory(path.parent)

    def remove(self, dataset: str) -> None:
        folder = self._folder(dataset)
        with self._locked(dataset):
            if self._head(dataset) is None:
                raise NotFound(f"there is no dataset {dataset}")
            # Removed with one rename; a process that is killed after it leaves files that are never read.
            hidden = self._root / f".removed-{os.urandom(8).hex()}"
            os.rename(folder, hidden)
            sync_directory(self._root)
            remove_tree(hidden)

    def _head(self, dataset: str) -> str | None:
        path = self._folder(dataset) / "head"
        try:
            return path.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _folder(self, dataset: str) -> Path:
        return self._root / check_dataset(dataset).replace("/", "%")

    @contextmanager
    def _locked(self, dataset: str) -> Iterator[None]:
        """One writer of a dataset at a time, among all processes; the kernel releases the lock when a process is
        killed."""
        locks = self._root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        path = locks / check_dataset(dataset).replace("/", "%")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
