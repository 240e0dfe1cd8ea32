"""Stored pieces: their packs, and how they are read and verified."""

from __future__ import annotations

import json
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from corral.datasets.content.blobs import BlobStore, replace_file
from corral.datasets.content.packs import Kind, PackIndex, decode_index, encode_index, index_name, pack_name
from corral.datasets.errors import Damaged, ObjectMissing
from corral.datasets.history.records import DIGEST_BYTES, digest_of

CONDEMNED = "condemned/"
Data = TypeVar("Data", bytes, memoryview)
_TEXT = f"S{DIGEST_BYTES}"
#: Packs of trees are fetched completely up to this size: one request instead of hundreds.
_WHOLE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Place:
    pack: str
    offset: int
    length: int


class PieceStore:
    """The pieces of a storage. Indexes never change, so each is read once and can be kept in `cache`."""

    def __init__(self, blobs: BlobStore, *, cache: Path | None = None) -> None:
        self.blobs = blobs
        self._cache = cache
        self._lock = threading.Lock()
        # One refresh at a time: an older answer must never replace a newer one, leases depend on it.
        self._looking = threading.Lock()
        self._packs: dict[str, PackIndex] = {}
        self._condemned: frozenset[str] = frozenset()
        self._table = _Table.of([], frozenset())
        self._whole: dict[str, bytes] = {}
        self._loaded = False

    def refresh(self) -> list[str]:
        """Read the list of packs again. Returns the ids of the runs that condemned packs, for a lease."""
        with self._looking:
            return self._refresh()

    def _refresh(self) -> list[str]:
        runs, condemned = read_condemned(self.blobs)
        names = {item.name.rsplit("/", 1)[1] for item in self.blobs.objects("index/")}
        with self._lock:
            new = sorted(names - self._packs.keys())
        with ThreadPoolExecutor(self.blobs.parallel) as pool:
            read = [index for index in pool.map(self._read_index, new) if index is not None]
        with self._lock:
            self._packs = {name: index for name, index in self._packs.items() if name in names}
            self._packs |= {index.id: index for index in read}
            self._condemned = condemned
            self._table = _Table.of(list(self._packs.values()), condemned)
            self._whole = {pack: data for pack, data in self._whole.items() if pack in names}
            self._loaded = True
        return runs

    def _read_index(self, pack: str) -> PackIndex | None:
        kept = self._cache / pack if self._cache is not None else None
        if kept is not None and kept.is_file():
            try:
                return decode_index(pack, kept.read_bytes())
            except Damaged:
                kept.unlink(missing_ok=True)
        try:
            data = self.blobs.get(index_name(pack))
        except ObjectMissing:
            return None  # collected since the list was made
        index = decode_index(pack, data)
        if kept is not None:
            replace_file(kept, data)
        return index

    @property
    def condemned(self) -> frozenset[str]:
        """Packs that runs of the garbage collection are about to remove."""
        return self._condemned

    def packs(self) -> list[PackIndex]:
        self._ensure()
        with self._lock:
            return list(self._packs.values())

    def locate(self, digests: Sequence[bytes], *, trusted: bool = False) -> list[Place | None]:
        """The location of each of the pieces. `trusted` leaves out packs that are about to be collected."""
        self._ensure()
        with self._lock:
            table = self._table
        return table.find(digests, trusted=trusted)

    def held_in(self, digests: Sequence[bytes], packs: Container[str]) -> list[bool]:
        """Whether each of the pieces is in one of these packs (it may be in others, too)."""
        self._ensure()
        with self._lock:
            table = self._table
        return [any(pack in packs for pack in holders) for holders in table.holders(digests)]

    def add(self, kind: Kind, at: float, pieces: Sequence[tuple[bytes, bytes | memoryview]]) -> int:
        """Publish a pack of pieces; when this returns it is stored and found. Returns its size in bytes."""
        pack, index = encode_index(kind, at, [(digest, len(data)) for digest, data in pieces])
        self.blobs.put(pack_name(pack), [data for _, data in pieces])
        self.blobs.put(index_name(pack), [index])
        with self._lock:
            self._packs[pack] = decode_index(pack, index)
        return sum(len(data) for _, data in pieces) + len(index)

    def get(self, digest: bytes) -> bytes:
        """A verified piece: for trees and lists, which are small and read often."""
        for attempt in (1, 2):
            place = self.locate([digest])[0]
            if place is not None:
                try:
                    return self._get_at(digest, place)
                except ObjectMissing:
                    pass
            if attempt == 1:
                self.refresh()  # it was stored, or moved, since the indexes were read
        raise Damaged(f"piece {digest.hex()}", f"no pack in {self.blobs.where} holds it")

    def _get_at(self, digest: bytes, place: Place) -> bytes:
        with self._lock:
            index = self._packs.get(place.pack)
            whole = self._whole.get(place.pack)
        if whole is None and index is not None and index.kind == "meta" and index.size <= _WHOLE_BYTES:
            whole = self.blobs.get(pack_name(place.pack))
            with self._lock:
                if sum(map(len, self._whole.values())) > 4 * _WHOLE_BYTES:
                    self._whole.clear()
                self._whole[place.pack] = whole
        if whole is not None:
            data = whole[place.offset : place.offset + place.length]
        else:
            data = self.blobs.get(pack_name(place.pack), place.offset, place.length)
        return check_piece(data, digest, place)

    def _ensure(self) -> None:
        if not self._loaded:
            self.refresh()


def check_piece(data: Data, digest: bytes, place: Place) -> Data:
    if digest_of(data) == digest:
        return data
    raise Damaged(
        pack_name(place.pack),
        f"piece {digest.hex()} ({place.length} bytes at {place.offset}) is not what was stored",
    )


def read_condemned(blobs: BlobStore) -> tuple[list[str], frozenset[str]]:
    """The runs of the garbage collection that are not over, and the packs that they will remove."""
    runs: list[str] = []
    packs: set[str] = set()
    for item in blobs.objects(CONDEMNED):
        try:
            body = json.loads(blobs.get(item.name))
        except ObjectMissing:
            continue  # that run is over
        runs.append(item.name[len(CONDEMNED) :])
        packs.update(body["packs"])
    return runs, frozenset(packs)


class _Table:
    """All pieces, sorted by digest: a few dozen bytes each, where a dictionary takes hundreds."""

    def __init__(
        self,
        packs: list[str],
        digests: NDArray[np.bytes_],
        pack_numbers: NDArray[np.int32],
        offsets: NDArray[np.int64],
        lengths: NDArray[np.int64],
        trusted: NDArray[np.bool_],
    ) -> None:
        self._packs = packs
        self._digests = digests
        self._pack_numbers = pack_numbers
        self._offsets = offsets
        self._lengths = lengths
        self._trusted = trusted

    @classmethod
    def of(cls, packs: list[PackIndex], condemned: Iterable[str]) -> _Table:
        # Of a piece in two packs the first one counts, everywhere: packs that stay come before packs that are removed.
        packs = sorted(packs, key=lambda pack: (pack.id in condemned, pack.id))
        counts = [len(pack.pieces) for pack in packs]
        digests = np.concatenate([np.empty(0, _TEXT), *(pack.digests() for pack in packs)])
        numbers = np.repeat(np.arange(len(packs), dtype=np.int32), counts)
        offsets = np.concatenate([np.empty(0, np.int64), *(pack.offsets() for pack in packs)])
        lengths = np.fromiter((length for pack in packs for _, length in pack.pieces), np.int64, sum(counts))
        stays = np.repeat(np.array([pack.id not in condemned for pack in packs], dtype=np.bool_), counts)
        order = np.argsort(digests, kind="stable")
        return cls(
            [pack.id for pack in packs], digests[order], numbers[order], offsets[order], lengths[order], stays[order]
        )

    def holders(self, digests: Sequence[bytes]) -> Iterator[list[str]]:
        """The packs that hold each of the pieces."""
        wanted = np.frombuffer(b"".join(digests), dtype=_TEXT)
        first = np.searchsorted(self._digests, wanted, side="left").tolist()
        behind = np.searchsorted(self._digests, wanted, side="right").tolist()
        for begin, end in zip(first, behind, strict=True):
            yield [self._packs[number] for number in self._pack_numbers[begin:end]]

    def find(self, digests: Sequence[bytes], *, trusted: bool) -> list[Place | None]:
        if not len(self._digests) or not digests:
            return [None] * len(digests)
        wanted = np.frombuffer(b"".join(digests), dtype=_TEXT)
        at = np.searchsorted(self._digests, wanted)
        inside = np.minimum(at, len(self._digests) - 1)
        found = self._digests[inside] == wanted
        if trusted:
            found &= self._trusted[inside]
        return [
            Place(self._packs[self._pack_numbers[i]], int(self._offsets[i]), int(self._lengths[i])) if hit else None
            for i, hit in zip(inside.tolist(), found.tolist(), strict=True)
        ]
