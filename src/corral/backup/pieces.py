"""Pieces of content in packs: written once, found by their digest, verified whenever they are read."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import zstandard

from corral.backup.errors import BackupError, DamagedBackup
from corral.datasets.content.blobs import BlobStore
from corral.datasets.errors import DatasetError, ObjectMissing

#: Largest piece, before compression.
PIECE_BYTES = 4 << 20
#: A pack is published at this size: few requests to a bucket, and little memory.
PACK_BYTES = 16 << 20
_KEPT_PACKS = 4
_LEVEL = 3
PACKS = "packs/"


@dataclass(frozen=True, slots=True)
class Piece:
    digest: str
    size: int
    pack: str
    offset: int
    stored: int

    def plain(self) -> list[str | int]:
        return [self.digest, self.size, self.pack, self.offset, self.stored]


def pack_name(pack: str) -> str:
    return f"{PACKS}{pack[:2]}/{pack}"


def read_in_pieces(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(PIECE_BYTES):
        yield data


class PieceWriter:
    """Adds pieces to packs. `known` are pieces that the archive has already."""

    def __init__(self, blobs: BlobStore, known: Iterable[Piece] = ()) -> None:
        self._blobs = blobs
        self._known = {piece.digest: piece for piece in known}
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._begin()
        #: bytes that were written to the archive
        self.written = 0
        #: packs that were written
        self.packs: list[str] = []

    def add(self, data: bytes) -> Piece:
        digest = hashlib.sha256(data).hexdigest()
        piece = self._known.get(digest)
        if piece is None:
            packed = self._compressor.compress(data)
            piece = Piece(digest, len(data), self._pack, self._offset, len(packed))
            self._parts.append(packed)
            self._offset += len(packed)
            self._known[digest] = piece
            if self._offset >= PACK_BYTES:
                self.flush()
        return piece

    def add_all(self, parts: Iterable[bytes]) -> tuple[Piece, ...]:
        return tuple(self.add(part) for part in parts)

    def flush(self) -> None:
        """Stores everything that was added."""
        if self._parts:
            with plain_errors():
                self._blobs.put(pack_name(self._pack), self._parts)
            self.written += self._offset
            self.packs.append(self._pack)
        self._begin()

    def _begin(self) -> None:
        self._pack = os.urandom(16).hex()
        self._parts: list[bytes] = []
        self._offset = 0


class PieceReader:
    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._packs: OrderedDict[str, bytes] = OrderedDict()
        self._decompressor = zstandard.ZstdDecompressor()

    def get(self, piece: Piece) -> bytes:
        """Raises DamagedBackup."""
        pack = self._pack(piece.pack)
        try:
            data = self._decompressor.decompress(pack[piece.offset : piece.offset + piece.stored])
        except zstandard.ZstdError as error:
            raise DamagedBackup(f"{pack_name(piece.pack)} is damaged: {error}") from error
        if len(data) != piece.size or hashlib.sha256(data).hexdigest() != piece.digest:
            raise DamagedBackup(f"{pack_name(piece.pack)} is damaged: piece {piece.digest[:16]} has other content")
        return data

    def _pack(self, pack: str) -> bytes:
        """Pieces of a backup lie beside each other: whole packs need the fewest requests."""
        found = self._packs.pop(pack, None)
        if found is None:
            try:
                with plain_errors():
                    found = self._blobs.get(pack_name(pack))
            except ObjectMissing as error:
                raise DamagedBackup(f"{pack_name(pack)} is missing in {self._blobs.where}") from error
        self._packs[pack] = found
        if len(self._packs) > _KEPT_PACKS:
            self._packs.popitem(last=False)
        return found


class plain_errors:
    """Errors of the storage as errors of the backup; a missing object stays what it is."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, DatasetError) and not isinstance(error, ObjectMissing):
            raise BackupError(str(error)) from error
