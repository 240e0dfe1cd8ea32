"""Committing a directory of this machine, and checking a version out into one, through a server.

The same code as on the server cuts, hashes and checks; only where pieces come from and go to is different: the server
says which it has, takes packs of those it has not, and gives the pieces of one version. Loaded only by who needs it: it
brings NumPy along.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from corral.client.client import Client
from corral.client.http.errors import ServerUnreachable
from corral.datasets.content.blobs import StoredObject, sync_directory
from corral.datasets.content.packs import Kind, encode_index
from corral.datasets.content.pieces import PieceStore, Place
from corral.datasets.errors import Damaged, DatasetError
from corral.datasets.history.records import digest_of
from corral.datasets.history.trees import walk
from corral.datasets.work.checkout import staging, write_tree
from corral.datasets.work.commit import StoredTree, store_directory
from corral.datasets.work.progress import OnProgress
from corral.datasets.work.scan import open_root
from corral.datasets.work.working_index import WorkingIndex

if TYPE_CHECKING:
    from corral.client.views import ErrandView, VersionView

Answer = TypeVar("Answer")

#: Ids in one question, and bytes in one answer.
_PORTION = 5000
_BATCH_BYTES = 4 << 20
_THREADS = min(8, os.cpu_count() or 1)
#: How often a pack or a batch is tried when the connection breaks, and the wait before.
_TRIES = 5
_PAUSE_SECONDS = 1.0
#: How often what vanished between sending and committing is sent again.
_ROUNDS = 3


def store(client: Client, dataset: str, directory: Path, on_progress: OnProgress | None = None) -> StoredTree:
    """Send what the server does not have of a directory. What an earlier try has sent is not sent again."""
    pieces = SendingPieces(client, dataset)
    with open_root(directory) as root:
        return store_directory(root, pieces, WorkingIndex(), threads=_THREADS, clock=time.time, on_progress=on_progress)


def commit(
    client: Client,
    dataset: str,
    directory: Path,
    body: dict[str, str | None],
    on_progress: OnProgress | None = None,
) -> ErrandView:
    """Send a directory, and make a version of it; what came of that."""
    for left in reversed(range(_ROUNDS)):
        stored = store(client, dataset, directory, on_progress)
        errand = client.datasets.commit(dataset, {**body, "tree": stored.tree.hex()})
        errand = client.datasets.wait(errand)
        # Somebody collected garbage just then: what was too old to be kept is sent again.
        if errand["state"] == "ready" or "pieces are missing" not in errand["error"] or not left:
            break
    return errand


def checkout(
    client: Client, dataset: str, version: VersionView, directory: Path, on_progress: OnProgress | None = None
) -> None:
    """Write a version into a directory that is not there yet or empty; it then appears at once and whole. Running it
    again after it was interrupted goes on where it was."""
    directory = Path(os.path.abspath(directory))
    if directory.is_dir() and any(os.scandir(directory)):
        raise DatasetError(f"{directory} is not empty: name another directory")
    pieces = FetchedPieces(client, dataset, version["id"])
    entries = list(walk(pieces, bytes.fromhex(version["tree"])))
    with staging(directory) as folder:
        write_tree(entries, folder, pieces, version=version["id"], threads=4, on_progress=on_progress)
        os.rename(folder, directory)
        sync_directory(directory.parent)


class _NoBlobs:
    """Implements `corral.datasets.content.blobs.BlobStore` as far as pieces need it that are behind a server."""

    parallel = 4

    def __init__(self, where: str) -> None:
        self.where = where

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        raise DatasetError(f"{name} cannot be put: the server takes whole packs")

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        raise DatasetError(f"{name} cannot be read: the server gives pieces of versions")

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        return iter(())

    def remove(self, name: str) -> None:
        raise DatasetError(f"{name} cannot be removed: that is the server's business")

    def sweep(self, older_than: float) -> int:
        return 0


class SendingPieces(PieceStore):
    """Where a commit's pieces go: to the server, if it has not got them."""

    def __init__(self, client: Client, dataset: str) -> None:
        super().__init__(_NoBlobs(client.server))
        self._client = client
        self._dataset = dataset

    def refresh(self) -> list[str]:
        return []

    def locate(self, digests: Sequence[bytes], *, trusted: bool = False) -> list[Place | None]:
        missing: set[str] = set()
        names = [digest.hex() for digest in digests]
        for begin in range(0, len(names), _PORTION):
            missing.update(self._missing(names[begin : begin + _PORTION]))
        return [None if name in missing else Place("", 0, 0) for name in names]

    def _missing(self, names: list[str]) -> Sequence[str]:
        return _again(lambda: self._client.datasets.missing(self._dataset, names))

    def add(self, kind: Kind, at: float, pieces: Sequence[tuple[bytes, bytes | memoryview]]) -> int:
        pack, index = encode_index(kind, at, [(digest, len(data)) for digest, data in pieces])
        parts = [data for _, data in pieces]
        _again(lambda: self._client.datasets.put_pack(self._dataset, pack, index, parts))
        return sum(map(len, parts)) + len(index)


class FetchedPieces(PieceStore):
    """The pieces of one version, fetched from the server in batches. A batch stands where a pack would."""

    def __init__(self, client: Client, dataset: str, version: str) -> None:
        super().__init__(_BatchBlobs(client.server, self))
        self._client = client
        self._dataset = dataset
        self._version = version
        self._batches: list[list[tuple[bytes, int]]] = []
        self._batch_bytes = 0

    def refresh(self) -> list[str]:
        return []

    def get(self, digest: bytes) -> bytes:
        data = self._fetch([digest])
        if digest_of(data) != digest:
            raise Damaged(f"piece {digest.hex()}", "what the server gave is not what was stored")
        return data

    def locate(self, digests: Sequence[bytes], *, trusted: bool = False) -> list[Place | None]:
        """In batches of a few megabytes, in the order in which they are asked for."""
        places: list[Place | None] = []
        for begin in range(0, len(digests), _PORTION):
            portion = digests[begin : begin + _PORTION]
            for digest, length in zip(portion, self._lengths([one.hex() for one in portion]), strict=True):
                places.append(None if length is None else self._place(digest, length))
        return places

    def _place(self, digest: bytes, length: int) -> Place:
        if not self._batches or self._batch_bytes + length > _BATCH_BYTES:
            self._batches.append([])
            self._batch_bytes = 0
        self._batches[-1].append((digest, length))
        self._batch_bytes += length
        return Place(f"{len(self._batches) - 1:010d}", self._batch_bytes - length, length)

    def _fetch(self, digests: Sequence[bytes]) -> bytes:
        names = [digest.hex() for digest in digests]
        return _again(lambda: self._client.datasets.read_pieces(self._dataset, self._version, names))

    def _lengths(self, names: list[str]) -> Sequence[int | None]:
        return _again(lambda: self._client.datasets.lengths(self._dataset, self._version, names))

    def read(self, batch: int, offset: int, length: int) -> bytes:
        wanted, at = [], 0
        for digest, size in self._batches[batch]:
            if offset <= at < offset + length or (size == 0 and at == offset):
                wanted.append(digest)
            at += size
        return self._fetch(wanted)


class _BatchBlobs(_NoBlobs):
    def __init__(self, where: str, pieces: FetchedPieces) -> None:
        super().__init__(where)
        self._pieces = pieces

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        assert length is not None
        return self._pieces.read(int(name.rpartition("/")[2]), offset, length)


def _again(ask: Callable[[], Answer]) -> Answer:
    """Everything here may be asked twice: pieces are what they are called."""
    for _ in range(_TRIES - 1):
        try:
            return ask()
        except ServerUnreachable:
            time.sleep(_PAUSE_SECONDS)
    return ask()
