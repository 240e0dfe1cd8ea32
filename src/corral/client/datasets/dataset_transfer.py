"""Commits a directory of this machine to a dataset, and checks out a version into a directory, through a server.

The same code as on the server splits, hashes and verifies files. Only the piece store differs: the server reports which
pieces it has, accepts packs of missing ones, and sends the pieces of one version. Import this module only where it is
needed: it imports NumPy.
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
    from corral.client.views import OperationView, VersionView

Answer = TypeVar("Answer")

#: Ids in one request, and bytes in one answer.
_PORTION = 5000
_BATCH_BYTES = 4 << 20
_THREADS = min(8, os.cpu_count() or 1)
#: Tries of a pack or batch when the connection breaks, and the delay between them.
_TRIES = 5
_PAUSE_SECONDS = 1.0
#: How often pieces that were collected between upload and commit are sent again.
_ROUNDS = 3


def store(client: Client, dataset: str, directory: Path, on_progress: OnProgress | None = None) -> StoredTree:
    """Send the pieces of a directory that the server does not have. Pieces of an earlier try are not sent again."""
    pieces = SendingPieces(client, dataset)
    with open_root(directory) as root:
        return store_directory(root, pieces, WorkingIndex(), threads=_THREADS, clock=time.time, on_progress=on_progress)


def commit(
    client: Client,
    dataset: str,
    directory: Path,
    body: dict[str, str | None],
    on_progress: OnProgress | None = None,
) -> OperationView:
    """Send a directory and commit it as a version. Returns the ended operation."""
    for left in reversed(range(_ROUNDS)):
        stored = store(client, dataset, directory, on_progress)
        begun = client.datasets.commit(dataset, {**body, "tree": stored.tree.hex()})
        operation = client.datasets.wait(begun)
        # A garbage collection ran meanwhile and removed old pieces: they are sent again.
        if operation["state"] == "ready" or "pieces are missing" not in operation["error"] or not left:
            break
    return operation


def checkout(
    client: Client, dataset: str, version: VersionView, directory: Path, on_progress: OnProgress | None = None
) -> None:
    """Write a version into a directory that does not exist or is empty. The directory appears at once, when it is
    complete. After an interruption the next call continues."""
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
    """The part of `corral.datasets.content.blobs.BlobStore` that a piece store behind a server needs."""

    parallel = 4

    def __init__(self, where: str) -> None:
        self.where = where

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        raise DatasetError(f"{name} cannot be put: the server accepts only whole packs")

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        raise DatasetError(f"{name} cannot be read: the server sends pieces of versions")

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        return iter(())

    def remove(self, name: str) -> None:
        raise DatasetError(f"{name} cannot be removed: only the server removes pieces")

    def sweep(self, older_than: float) -> int:
        return 0


class SendingPieces(PieceStore):
    """Sends the pieces of a commit to the server, if the server does not have them."""

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
        return _retried(lambda: self._client.datasets.missing(self._dataset, names))

    def add(self, kind: Kind, at: float, pieces: Sequence[tuple[bytes, bytes | memoryview]]) -> int:
        pack, index = encode_index(kind, at, [(digest, len(data)) for digest, data in pieces])
        parts = [data for _, data in pieces]
        _retried(lambda: self._client.datasets.put_pack(self._dataset, pack, index, parts))
        return sum(map(len, parts)) + len(index)


class FetchedPieces(PieceStore):
    """The pieces of one version, fetched from the server in batches. A batch takes the place of a pack."""

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
            raise Damaged(f"piece {digest.hex()}", "the content from the server does not have this digest")
        return data

    def locate(self, digests: Sequence[bytes], *, trusted: bool = False) -> list[Place | None]:
        """Places in batches of a few megabytes, in the order of the digests."""
        places: list[Place | None] = []
        for begin in range(0, len(digests), _PORTION):
            portion = digests[begin : begin + _PORTION]
            for digest, length in zip(portion, self._lengths([piece.hex() for piece in portion]), strict=True):
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
        return _retried(lambda: self._client.datasets.read_pieces(self._dataset, self._version, names))

    def _lengths(self, names: list[str]) -> Sequence[int | None]:
        return _retried(lambda: self._client.datasets.lengths(self._dataset, self._version, names))

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


def _retried(request: Callable[[], Answer]) -> Answer:
    """All requests of this module are idempotent: pieces are named by their digest."""
    for _ in range(_TRIES - 1):
        try:
            return request()
        except ServerUnreachable:
            time.sleep(_PAUSE_SECONDS)
    return request()
