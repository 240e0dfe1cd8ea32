"""Makes a version of pieces that a client has stored: checks that all of them are there, then records it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from corral.core.counts import counted
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import DatasetError
from corral.datasets.history.leases import Lease
from corral.datasets.history.records import (
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_SIZE,
    Commit,
    Entry,
    check_dataset,
    decode_list,
    decode_tree,
)
from corral.datasets.repository import LATEST, Committed, Repository

#: The number of pieces in one lookup.
_PORTION = 10_000


class Incomplete(DatasetError):
    """Some pieces that it needs are missing, or about to be removed: send them, then commit again."""

    def __init__(self, missing: int, first: bytes) -> None:
        super().__init__(
            f"{counted(missing, 'piece is', 'pieces are')} missing, {first.hex()} among them: send them again"
        )
        self.missing = missing


def adopt(
    repository: Repository,
    dataset: str,
    tree: str,
    *,
    message: str,
    author: str,
    job: str | None = None,
    parent: str | None = LATEST,
    sent: Container[str] | None = None,
) -> Committed:
    """Make a tree whose pieces were stored before the newest version. Raises `Incomplete`, and `HeadMoved`.

    `sent` names the packs that the author has sent: the tree may need only pieces in them or in an earlier version of
    this dataset; all other pieces count as missing, whether the storage has them or not. None allows everything.
    """
    check_dataset(dataset)
    head = repository.head(dataset)
    expected = (head.id if head else None) if parent == LATEST else parent
    if head is not None and head.tree == tree and expected == head.id:
        return Committed(commit=head, created=False)
    repository.claim()
    with Lease(repository.storage, repository.clock) as lease:
        # Pieces found now stay: a collection that began before this is seen, a later one sees the lease.
        lease.saw(repository.pieces.refresh())
        allowed = None if sent is None else _Allowed(repository, dataset, sent)
        sizes = _Sizes(repository.pieces, allowed)
        sizes.look(bytes.fromhex(tree))
        old = set() if head is None else set(_digests(repository.pieces, bytes.fromhex(head.tree)))
        commit = Commit(
            dataset=dataset,
            tree=tree,
            parent=expected,
            message=message,
            author=author,
            at=repository.clock(),
            job=job,
            files=sizes.files,
            bytes=sizes.bytes,
            new_bytes=sum(length for digest, length in sizes.pieces.items() if digest not in old),
        )
        repository.publish(commit, lease)
    return Committed(commit=commit, created=True)


class _Allowed:
    """The pieces that a new version of a dataset may name. Earlier versions are read only as far back as needed."""

    def __init__(self, repository: Repository, dataset: str, sent: Container[str]) -> None:
        self._pieces = repository.pieces
        self._sent = sent
        self._versions = iter(repository.metadata.log(dataset))
        self._read: set[bytes] = set()

    def check(self, digests: Sequence[bytes]) -> None:
        """Raises Incomplete."""
        held = self._pieces.held_in(digests, self._sent)
        unknown = [digest for digest, is_held in zip(digests, held, strict=True) if not is_held]
        unknown = [digest for digest in unknown if digest not in self._read]
        while unknown:
            version = next(self._versions, None)
            if version is None:
                raise Incomplete(len(unknown), unknown[0])
            self._read.update(_digests(self._pieces, bytes.fromhex(version.tree)))
            unknown = [digest for digest in unknown if digest not in self._read]


@dataclass(slots=True)
class _Counted:
    """The size of a directory with everything below it."""

    files: int = 0
    bytes: int = 0
    entries: int = 0
    #: directories in each other, below it
    depth: int = 0

    def take(self, entry: Entry) -> None:
        self.entries += 1
        if entry.kind == "file":
            self.files += 1
            self.bytes += entry.size

    def add(self, inner: _Counted) -> None:
        """A directory in it."""
        self.files += inner.files
        self.bytes += inner.bytes
        self.entries += inner.entries + 1
        self.depth = max(self.depth, inner.depth + 1)


class _Sizes:
    """Walks a tree and checks that the version can rely on every piece of it, and may use it."""

    def __init__(self, pieces: PieceStore, allowed: _Allowed | None) -> None:
        self._store = pieces
        self._allowed = allowed
        self.files = 0
        self.bytes = 0
        #: length of every piece that it needs
        self.pieces: dict[bytes, int] = {}
        self._unsure: list[tuple[bytes, int]] = []

    def look(self, tree: bytes) -> None:
        """Each directory is read once, however often the tree names it. Raises DatasetError if the tree is too deep or
        has too many entries."""
        counted: dict[bytes, _Counted] = {}
        levels = [(tree, _Counted(), iter(self._directory(tree)))]
        while levels:
            directory, counts, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                counted[directory] = counts
                levels.pop()
                if levels:
                    levels[-1][1].add(counts)
            elif entry.kind != "dir":
                counts.take(entry)
                if entry.kind == "file":
                    self._file(entry)
            elif entry.digest in counted:
                counts.add(counted[entry.digest])
            else:
                levels.append((entry.digest, _Counted(), iter(self._directory(entry.digest))))
            if len(levels) + counts.depth > MAX_DEPTH:
                raise DatasetError(f"it has more than {MAX_DEPTH} directories in each other")
            if counts.entries > MAX_ENTRIES:
                raise DatasetError(f"it has more than {MAX_ENTRIES} files and directories")
            if counts.bytes > MAX_SIZE:
                raise DatasetError(f"it has more than {MAX_SIZE} bytes")
            if len(self._unsure) >= _PORTION:
                self._settle()
        self._settle()
        self.files, self.bytes = counted[tree].files, counted[tree].bytes

    def _directory(self, tree: bytes) -> list[Entry]:
        self._meta(tree)
        return decode_tree(self._store.get(tree))

    def _file(self, entry: Entry) -> None:
        if entry.listed:
            self._meta(entry.digest)
            parts = decode_list(self._store.get(entry.digest))
            if sum(length for _, length in parts) != entry.size:
                raise DatasetError(f"{entry.name!r} is said to have {entry.size} bytes, and its pieces have others")
            self._unsure += parts
        elif entry.size:
            self._unsure.append((entry.digest, entry.size))

    def _meta(self, digest: bytes) -> None:
        (place,) = self._store.locate([digest], trusted=True)
        if place is None:
            raise Incomplete(1, digest)
        if self._allowed is not None:
            self._allowed.check([digest])
        self.pieces[digest] = place.length

    def _settle(self) -> None:
        places = self._store.locate([digest for digest, _ in self._unsure], trusted=True)
        missing = [digest for (digest, _), place in zip(self._unsure, places, strict=True) if place is None]
        if missing:
            raise Incomplete(len(missing), missing[0])
        if self._allowed is not None:
            self._allowed.check([digest for digest, _ in self._unsure])
        for (digest, length), place in zip(self._unsure, places, strict=True):
            assert place is not None
            if place.length != length:
                raise DatasetError(f"piece {digest.hex()} has {place.length} bytes, and its file says {length}")
            self.pieces[digest] = length
        self._unsure.clear()


def _digests(pieces: PieceStore, tree: bytes) -> Iterator[bytes]:
    """Yields the digests of everything that a tree needs, including itself."""
    waiting, seen = [tree], set[bytes]()
    while waiting:
        directory = waiting.pop()
        if directory in seen:
            continue
        seen.add(directory)
        yield directory
        for entry in decode_tree(pieces.get(directory)):
            if entry.kind == "dir":
                waiting.append(entry.digest)
            # The piece of an empty file is never stored, and so never checked.
            elif entry.kind == "file" and (entry.size or entry.listed):
                yield entry.digest
                if entry.listed:
                    yield from (digest for digest, _ in decode_list(pieces.get(entry.digest)))
