"""Stores pieces that are not stored yet: collects them into packs, which threads write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from corral.datasets.content.packs import PACK_BYTES, Kind
from corral.datasets.content.pieces import PieceStore
from corral.datasets.history.records import digest_of

#: Packs in memory at once: one that is being filled, and those being written.
_MOST_WAITING = 4


class Uploader:
    """Stores the pieces of one commit. Not for several threads: the thread that reads calls it."""

    def __init__(self, pieces: PieceStore, clock: Callable[[], float]) -> None:
        self._pieces = pieces
        self._clock = clock
        self._pool = ThreadPoolExecutor(min(_MOST_WAITING, pieces.blobs.parallel), thread_name_prefix="dataset-pack")
        self._writing: deque[Future[int]] = deque()
        self._filling: dict[Kind, list[tuple[bytes, bytes | memoryview]]] = {"data": [], "meta": []}
        self._bytes: dict[Kind, int] = {"data": 0, "meta": 0}
        self._stored: set[bytes] = set()
        #: bytes that the storage grew by
        self.new_bytes = 0

    def __enter__(self) -> Uploader:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def add(self, pieces: Sequence[tuple[bytes, bytes | memoryview]], kind: Kind = "data") -> None:
        """Store the pieces that no version has yet. Waits if the storage is slower than the reader."""
        there = self.has([digest for digest, _ in pieces])
        # A view keeps the whole buffer in memory: if little of it is new, that part is copied.
        sparse = 2 * sum(there) > len(there)
        for (digest, data), is_there in zip(pieces, there, strict=True):
            if is_there or digest in self._stored:
                continue
            self._stored.add(digest)
            self._filling[kind].append((digest, bytes(data) if sparse else data))
            self._bytes[kind] += len(data)
            if self._bytes[kind] >= PACK_BYTES:
                self._seal(kind)

    def add_meta(self, data: bytes) -> bytes:
        digest = digest_of(data)
        self.add([(digest, data)], "meta")
        return digest

    def has(self, digests: Sequence[bytes]) -> list[bool]:
        """The pieces that the version can rely on."""
        places = self._pieces.locate(digests, trusted=True)
        return [place is not None or digest in self._stored for digest, place in zip(digests, places, strict=True)]

    def finish(self) -> None:
        """Waits until everything that was added is stored."""
        self._seal("data")
        self._seal("meta")
        while self._writing:
            self.new_bytes += self._writing.popleft().result()

    def _seal(self, kind: Kind) -> None:
        if not self._filling[kind]:
            return
        full, self._filling[kind], self._bytes[kind] = self._filling[kind], [], 0
        while len(self._writing) >= _MOST_WAITING:
            self.new_bytes += self._writing.popleft().result()
        self._writing.append(self._pool.submit(self._pieces.add, kind, self._clock(), full))
