"""Datasets in one storage with one history: the interface for the command line, the server and programs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corral.core.counts import counted, noun_for
from corral.datasets.content.blobs import BlobStore, sync_directory
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import (
    AnotherOwner,
    DatasetError,
    NotFound,
    ObjectMissing,
    UnknownFormat,
    naming,
    printable,
)
from corral.datasets.history.leases import Lease
from corral.datasets.history.records import Commit, Entry, PathEntry, canonical, check_dataset, is_version
from corral.datasets.history.trees import Diff, diff, find, read_file, walk
from corral.datasets.history.versions import VersionStore
from corral.datasets.work.checkout import flush, make_read_only, staging, write_tree
from corral.datasets.work.commit import StoredTree, store_directory
from corral.datasets.work.garbage_collection import GRACE_SECONDS, GarbageReport, collect
from corral.datasets.work.progress import OnProgress
from corral.datasets.work.scan import open_root
from corral.datasets.work.update import update_directory
from corral.datasets.work.verification import Verified, verify
from corral.datasets.work.working_index import WorkingIndex, index_path, load_index, save_index

_FORMAT = "format.json"
_FORMAT_NUMBER = 1
#: means the newest version, wherever a version can be named
LATEST = "latest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    commit: Commit
    #: false if there was no difference to the newest version, which `commit` is then
    created: bool


class Repository:
    """Versions of files. Every method may be called from any thread, and by many processes at once.

    `cache` is a private directory: with it unchanged files are not read again, and known parts of the storage are not
    fetched again. It can be removed at any time.
    """

    def __init__(
        self,
        storage: BlobStore,
        metadata: VersionStore,
        *,
        cache: Path | None = None,
        threads: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.storage = storage
        self.metadata = metadata
        self.pieces = PieceStore(storage, cache=cache / "index" if cache is not None else None)
        self._cache = cache
        self._threads = threads or min(8, os.cpu_count() or 1)
        self.clock = clock

    # Making versions

    def commit(
        self,
        dataset: str,
        directory: Path,
        *,
        message: str,
        author: str,
        job: str | None = None,
        parent: str | None = LATEST,
        on_progress: OnProgress | None = None,
        max_bytes: int | None = None,
    ) -> Committed:
        """Make the content of a directory the newest version, unless it is longer than `max_bytes`.

        `parent` is the version that it must follow (None: it must be the first one); by default the newest one at this
        moment. Raises `HeadMoved` if another version was made meanwhile, `Unstable` if a file changes while it is read;
        then there is no new version, and running it again reuses uploaded data.
        """
        check_dataset(dataset)
        head = self.head(dataset)
        expected = (head.id if head else None) if parent == LATEST else parent
        self.claim()
        with open_root(directory) as root, Lease(self.storage, self.clock) as lease:
            lease.saw(self.pieces.refresh())
            index = self._load_index(directory)
            read_at = time.time_ns()
            stored = store_directory(
                root,
                self.pieces,
                index,
                threads=self._threads,
                clock=self.clock,
                on_progress=on_progress,
                max_bytes=max_bytes,
            )
            if head is not None and head.tree == stored.tree.hex() and expected == head.id:
                self._save_index(directory, head.id, stored, read_at)
                return Committed(commit=head, created=False)
            commit = Commit(
                dataset=dataset,
                tree=stored.tree.hex(),
                parent=expected,
                message=message,
                author=author,
                at=self.clock(),
                job=job,
                files=stored.files,
                bytes=stored.bytes,
                new_bytes=stored.new_bytes,
            )
            self.publish(commit, lease)
        self._save_index(directory, commit.id, stored, read_at)
        return Committed(commit=commit, created=True)

    def publish(self, commit: Commit, lease: Lease) -> None:
        """Record a version whose pieces are all stored and protected by a lease."""
        self.pieces.refresh()  # so that the trees that were just stored are found
        lease.check()
        tree = bytes.fromhex(commit.tree)
        self.metadata.append(commit, expected_parent=commit.parent, manifest=lambda: walk(self.pieces, tree))

    # Looking at versions

    def head(self, dataset: str) -> Commit | None:
        return next(iter(self.metadata.log(dataset)), None)

    def log(self, dataset: str) -> Iterator[Commit]:
        """Newest first. Raises `NotFound` if there is no such dataset."""
        self.resolve(dataset, LATEST)
        return self.metadata.log(dataset)

    def resolve(self, dataset: str, version: str) -> Commit:
        """A version by its id, the beginning of its id (at least 4 digits), a tag, or `latest`. Raises `NotFound`."""
        if is_version(version):
            return self.metadata.get(dataset, version)
        if version == LATEST:
            head = self.head(dataset)
            if head is None:
                raise NotFound(f"{dataset} has no versions")
            return head
        tagged = self.metadata.tags(dataset).get(version)
        if tagged is not None:
            return self.metadata.get(dataset, tagged)
        found = [c for c in self.metadata.log(dataset) if len(version) >= 4 and c.id.startswith(version)]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(
                f"{counted(len(found), 'version')} of {dataset} "
                f"{noun_for(len(found), 'begins', 'begin')} with {version}: give more digits"
            )
        raise NotFound(f"{dataset} has no version or tag {version}")

    def files(self, dataset: str, version: str = LATEST) -> Iterator[PathEntry]:
        """Yields all entries of a version, directories before their content."""
        commit = self.resolve(dataset, version)
        with naming(version=commit.id):
            yield from walk(self.pieces, bytes.fromhex(commit.tree))

    def find(self, dataset: str, version: str, path: str) -> Entry:
        """One file, directory or link of a version. Raises `NotFound`."""
        return find(self.pieces, self._tree(dataset, version), path)

    def read(
        self, dataset: str, version: str, path: str, *, offset: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """The bytes of one file, a piece at a time, each verified. Raises `NotFound`, and `Damaged` while iterating."""
        commit = self.resolve(dataset, version)
        with naming(version=commit.id, path=path):
            entry = find(self.pieces, bytes.fromhex(commit.tree), path)
        if entry.kind != "file":
            raise NotFound(f"{printable(path)} is not a file but a {entry.kind}")
        return self._read(commit, path, entry, offset, length)

    def _read(self, commit: Commit, path: str, entry: Entry, offset: int, length: int | None) -> Iterator[bytes]:
        with naming(version=commit.id, path=path):
            yield from read_file(self.pieces, entry, offset, length)

    def diff(self, dataset: str, old: str | None, new: str = LATEST) -> Diff:
        """The differences from one version to another; from None everything is added."""
        before = self._tree(dataset, old) if old is not None else None
        return diff(self.pieces, before, self._tree(dataset, new))

    # Tags, and forgetting

    def tag(self, dataset: str, tag: str, version: str = LATEST) -> Commit:
        commit = self.resolve(dataset, version)
        self.metadata.tag(dataset, tag, commit.id)
        return commit

    def untag(self, dataset: str, tag: str) -> None:
        self.metadata.untag(dataset, tag)

    def tags(self, dataset: str) -> dict[str, str]:
        return self.metadata.tags(dataset)

    def remove(self, dataset: str) -> None:
        """Removes a dataset. Its files stay until the next garbage collection."""
        self.metadata.remove(dataset)

    # Having a version as files

    def checkout(
        self,
        dataset: str,
        version: str,
        directory: Path,
        *,
        read_only: bool = False,
        update: bool = False,
        force: bool = False,
        durable: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Commit:
        """Write a version into a directory that does not exist yet or is empty; it appears atomically.

        With `update` the directory may hold another version: only differences are written, and each file is either the
        old one or the new one. It raises `LocalChanges`, with nothing changed, if that would overwrite or remove files
        that are not known to be in a version; `force` does it nevertheless. `durable` waits until everything is on the
        disk. Running it again after an interruption finishes it. Only the caller should be able to write beside the
        directory.
        """
        commit = self.resolve(dataset, version)
        with naming(version=commit.id):
            entries = list(walk(self.pieces, bytes.fromhex(commit.tree)))
        directory = Path(os.path.abspath(directory))
        if directory.is_dir() and any(os.scandir(directory)):
            if not update:
                raise DatasetError(f"{directory} is not empty: name another directory, or update it")
            index = self._load_index(directory)
            update_directory(
                entries,
                self._old_entries(dataset, index),
                directory,
                self.pieces,
                index,
                version=commit.id,
                threads=self._threads,
                force=force,
                on_progress=on_progress,
            )
            if read_only:
                make_read_only(directory)
            if durable:
                flush(directory)
        else:
            with staging(directory) as folder:
                write_tree(
                    entries, folder, self.pieces, version=commit.id, threads=self._threads, on_progress=on_progress
                )
                if read_only:
                    make_read_only(folder)
                if durable:
                    flush(folder)
                os.rename(folder, directory)
                sync_directory(directory.parent)
        self._remember(directory, commit.id)
        return commit

    # Keeping house

    def verify(self, dataset: str | None = None, version: str | None = None) -> Verified:
        """Read all pieces of a version, of all versions of a dataset, or of all datasets."""
        self.pieces.refresh()
        datasets = [dataset] if dataset is not None else self.metadata.datasets()
        if dataset is not None and version is not None:
            commits = [self.resolve(dataset, version)]
        else:
            commits = [commit for name in datasets for commit in self.metadata.log(name)]
        return verify(self.pieces, commits, threads=self._threads)

    def collect_garbage(self, *, dry_run: bool = True, grace_seconds: float = GRACE_SECONDS) -> GarbageReport:
        """Remove data that no version of any dataset needs and that is older than the grace time; by default only
        report it."""
        self.claim()
        return collect(self.pieces, self.metadata, now=self.clock(), dry_run=dry_run, grace_seconds=grace_seconds)

    def _tree(self, dataset: str, version: str) -> bytes:
        return bytes.fromhex(self.resolve(dataset, version).tree)

    def claim(self) -> None:
        """A storage belongs to one source of metadata, from its first commit on."""
        try:
            body = json.loads(self.storage.get(_FORMAT))
        except ObjectMissing:
            body = {"format": _FORMAT_NUMBER, "owner": self.metadata.identity}
            self.storage.put(_FORMAT, [canonical(body)])
        if body["format"] != _FORMAT_NUMBER:
            raise UnknownFormat(f"{self.storage.where} is of format {body['format']}: update corral")
        if body["owner"] != self.metadata.identity:
            raise AnotherOwner(self.storage.where, body["owner"], self.metadata.identity)

    def _load_index(self, directory: Path) -> WorkingIndex:
        return load_index(index_path(self._cache, directory)) if self._cache is not None else WorkingIndex()

    def _save_index(self, directory: Path, version: str, stored: StoredTree, read_at_ns: int) -> None:
        if self._cache is not None:
            save_index(index_path(self._cache, directory), version, stored.known, read_at_ns=read_at_ns)

    def _old_entries(self, dataset: str, index: WorkingIndex) -> dict[str, Entry]:
        try:
            tree = self._tree(dataset, index.version) if index.version is not None else None
        except NotFound:
            return {}  # of another dataset, or forgotten
        return {item.path: item.entry for item in walk(self.pieces, tree)} if tree is not None else {}

    def _remember(self, directory: Path, version: str) -> None:
        """Store what was written there: a later update must know which files are not a user's work."""
        if self._cache is not None:
            save_index(index_path(self._cache, directory), version, {}, read_at_ns=0)
