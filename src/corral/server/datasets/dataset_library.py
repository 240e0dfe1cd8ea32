"""Reads the content of versions: files, differences, pieces; and stores packs that clients send.

Each target has one open storage, shared by all requests. Every method waits for disks and buckets: call it on a thread,
never on the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from secrets import token_hex
from tempfile import SpooledTemporaryFile

from corral.control.datasets import targets
from corral.control.ports import Store
from corral.control.records import DatasetRecord, VersionRecord
from corral.core.counts import counted
from corral.datasets.content.content_places import open_blobs
from corral.datasets.content.packs import PACK_BYTES, check_pack, decode_index, index_name, pack_name
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import DatasetError, NotFound
from corral.datasets.history.git_versions import GitVersions
from corral.datasets.history.records import Entry, decode_list, decode_tree
from corral.datasets.history.trees import Diff, diff, find, get_data, list_directory, read_file
from corral.server.auth.secret_box import SecretBox
from corral.server.datasets.dataset_access import (
    Message,
    dataset_key,
    git_access,
    index_cache,
    open_git,
    sent_packs_path,
    storage_access,
)
from corral.server.datasets.dataset_sent import SentPacks
from corral.server.http.problems import Problem
from corral.server.settings.settings import Settings

#: The largest pack that is accepted: it is held in memory while it is checked.
MOST_PACK_BYTES = 2 * PACK_BYTES
MOST_INDEX_BYTES = 64 << 20
#: Packs that are accepted at the same time, and that one user may be sending.
AT_ONCE = 4
RECEIVED_AT_ONCE = 16
_SPOOLED_BYTES = 1 << 20
Spool = SpooledTemporaryFile[bytes]
#: Versions whose sets of pieces are cached.
_KEPT_VERSIONS = 8


class NotOfVersion(DatasetError):
    """The requested piece does not belong to this version."""


@dataclass(frozen=True, slots=True)
class _Opened:
    access: Message
    pieces: PieceStore


class DatasetLibrary:
    def __init__(self, *, store: Store, settings: Settings, box: SecretBox) -> None:
        self._store = store
        self._settings = settings
        self._box = box
        self._guard = threading.Lock()
        self._opened: dict[str, _Opened] = {}
        self._needed: OrderedDict[str, frozenset[bytes]] = OrderedDict()
        self.sent = SentPacks(sent_packs_path(settings))
        #: held while a pack is accepted: the pack is in memory until it is checked
        self.taking_in = asyncio.Semaphore(AT_ONCE)
        self._receiving: Counter[str] = Counter()

    @contextmanager
    def receiving(self, user: str) -> Iterator[None]:
        """Count a pack that the user sends. Raises a 503 problem beyond the limit."""
        if self._receiving[user] >= RECEIVED_AT_ONCE:
            raise Problem(
                503,
                "Busy",
                f"You are sending {RECEIVED_AT_ONCE} packs already: try again in a moment.",
                slug="busy",
                headers={"Retry-After": "5"},
            )
        self._receiving[user] += 1
        try:
            yield
        finally:
            self._receiving[user] -= 1
            if not self._receiving[user]:
                del self._receiving[user]

    def spool(self) -> Spool:
        """A file without a name for a pack that is being received; small packs stay in memory."""
        return SpooledTemporaryFile(_SPOOLED_BYTES, dir=str(self._settings.home))

    def pieces(self, target: str) -> PieceStore:
        """The storage of a target as it is configured now. Raises NotReachable."""
        with self._store.read() as tx:
            access = storage_access(tx, targets.existing(tx, target), self._settings, self._box)
        with self._guard:
            known = self._opened.get(target)
        if known is not None and known.access == access:
            return known.pieces
        pieces = PieceStore(open_blobs(access), cache=index_cache(self._settings, target) / "index")
        with self._guard:
            self._opened[target] = _Opened(access, pieces)
        return pieces

    def try_out(self, target: str) -> str:
        """Write, read and remove a small object; a message for users. Raises the error of the storage."""
        blobs = self.pieces(target).blobs
        name, content = f"probe/{token_hex(8)}", token_hex(16).encode()
        blobs.put(name, [content])
        seen = blobs.get(name)
        blobs.remove(name)
        if seen != content:
            raise DatasetError(f"{blobs.where} returned other bytes than were written")
        git = self.git(target)
        history = "" if git is None else f"; the repository has {counted(len(git.datasets()), 'dataset')}"
        return f"{blobs.where} can be written and read{history}"

    def git(self, target: str) -> GitVersions | None:
        """The repository that keeps the history of a target's datasets, if one does. Raises NotReachable."""
        with self._store.read() as tx:
            access = git_access(targets.existing(tx, target), self._settings, self._box)
        return None if access is None else open_git(access)

    # Each of these does nothing if the history is in corral's own store.

    def tag(self, dataset: DatasetRecord, tag: str, version: str) -> None:
        if git := self.git(dataset.target):
            git.tag(dataset_key(dataset), tag, version)

    def untag(self, dataset: DatasetRecord, tag: str) -> None:
        if git := self.git(dataset.target):
            with suppress(NotFound):
                git.untag(dataset_key(dataset), tag)

    def forget(self, dataset: DatasetRecord) -> None:
        if git := self.git(dataset.target):
            with suppress(NotFound):
                git.remove(dataset_key(dataset))

    # ---------------------------------------------------------------- files

    def entries(self, target: str, version: VersionRecord, path: str) -> list[Entry]:
        """The entries of one directory, by name. Raises the dataset library's NotFound."""
        return list_directory(self.pieces(target), bytes.fromhex(version.tree), path)

    def entry(self, target: str, version: VersionRecord, path: str) -> Entry:
        return find(self.pieces(target), bytes.fromhex(version.tree), path)

    def content(self, target: str, entry: Entry, offset: int, length: int) -> Iterator[bytes]:
        """A part of a file; each piece is checked before it is returned."""
        return _begun(read_file(self.pieces(target), entry, offset, length))

    def diff(self, target: str, old: VersionRecord | None, new: VersionRecord) -> Diff:
        before = None if old is None else bytes.fromhex(old.tree)
        return diff(self.pieces(target), before, bytes.fromhex(new.tree))

    # ---------------------------------------------------------------- pieces

    def missing(self, target: str, user: str, newest: VersionRecord | None, digests: Sequence[bytes]) -> list[bytes]:
        """The pieces that this user must send for a new version: all but those that the user has sent before, and those
        of the dataset's newest version. So the answer reveals nothing about the pieces of other users."""
        pieces = self.pieces(target)
        pieces.refresh()
        places = pieces.locate(digests, trusted=True)
        sent = pieces.held_in(digests, self.sent.packs(target, user))
        readable = frozenset() if newest is None or all(sent) else self._needed_by(target, newest.tree)
        return [
            digest
            for digest, place, is_sent in zip(digests, places, sent, strict=True)
            if place is None or not (is_sent or digest in readable)
        ]

    def take_in(self, target: str, user: str, pack: str, index: bytes, size: int, spool: Spool) -> None:
        """Store a user's pack, if every piece in it matches its index. Raises Damaged."""
        spool.seek(len(index))
        data: bytes = spool.read(size)
        check_pack(pack, index, data)
        pieces = self.pieces(target)
        # The index last: a pack without an index is ignored.
        pieces.blobs.put(pack_name(pack), [data])
        pieces.blobs.put(index_name(pack), [index])
        self.sent.note(target, user, pack)

    def lengths(self, target: str, version: VersionRecord, digests: Sequence[bytes]) -> list[int | None]:
        """The length of each piece of a version; None if the storage does not have it. Raises NotOfVersion."""
        self._check_needed(target, version, digests)
        pieces = self.pieces(target)
        places = pieces.locate(digests)
        if None in places:
            pieces.refresh()
            places = pieces.locate(digests)
        return [None if place is None else place.length for place in places]

    def read_pieces(self, target: str, version: VersionRecord, digests: Sequence[bytes]) -> Iterator[bytes]:
        """The pieces in this order, each checked. Raises NotOfVersion before anything is read."""
        self._check_needed(target, version, digests)
        pieces = self.pieces(target)
        return _begun(get_data(pieces, digest) for digest in digests)

    def _check_needed(self, target: str, version: VersionRecord, digests: Sequence[bytes]) -> None:
        """A user who may read one version must not read files of other versions by the digests of their pieces."""
        needed = self._needed_by(target, version.tree)
        for digest in digests:
            if digest not in needed:
                raise NotOfVersion(f"piece {digest.hex()} is not needed by version {version.id[:12]}")

    def _needed_by(self, target: str, tree: str) -> frozenset[bytes]:
        with self._guard:
            known = self._needed.get(tree)
            if known is not None:
                self._needed.move_to_end(tree)
                return known
        pieces = self.pieces(target)
        needed: set[bytes] = set()
        waiting = [bytes.fromhex(tree)]
        while waiting:
            directory = waiting.pop()
            if directory in needed:
                continue
            needed.add(directory)
            for entry in decode_tree(pieces.get(directory)):
                if entry.kind == "dir":
                    waiting.append(entry.digest)
                # The digest of an empty file is not checked when it is stored: its author could have chosen any digest.
                elif entry.kind == "file" and (entry.size or entry.listed):
                    needed.add(entry.digest)
                    if entry.listed:
                        needed.update(digest for digest, _ in decode_list(pieces.get(entry.digest)))
        with self._guard:
            self._needed[tree] = frozenset(needed)
            while len(self._needed) > _KEPT_VERSIONS:
                self._needed.popitem(last=False)
        return frozenset(needed)


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Read the first piece now, so that an error in it can still be reported as a problem."""
    return chain([next(pieces, b"")], pieces)


def index_pieces(pack: str, index: bytes) -> int:
    """The size of a pack according to its index. Raises Damaged."""
    return decode_index(pack, index).size
