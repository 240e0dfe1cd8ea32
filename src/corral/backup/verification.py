"""Reads a backup back and compares every digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corral.backup import manifest as manifests
from corral.backup.errors import DamagedBackup
from corral.backup.manifest import Manifest, SavedFile, SavedTable
from corral.backup.pieces import Piece, PieceReader
from corral.core.counts import counted
from corral.datasets.content.blobs import BlobStore


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    tables: int
    rows: int
    files: int
    bytes: int


def verify_backup(blobs: BlobStore, manifest: Manifest) -> Verified:
    """Read everything that the backup holds. Raises DamagedBackup."""
    reader = PieceReader(blobs)
    size = 0
    for name, table in manifest.tables.items():
        size += sum(len(page) for page in table_pages(reader, name, table))
    files = list(read_file_list(blobs, manifest))
    if len(files) != manifest.files:
        raise DamagedBackup(
            f"the list of files has {counted(len(files), 'entry', 'entries')} instead of {manifest.files}"
        )
    size += read_pieces(reader, (piece for file in files for piece in file.pieces))
    rows = sum(table.rows for table in manifest.tables.values())
    return Verified(tables=len(manifest.tables), rows=rows, files=len(files), bytes=size)


def table_pages(reader: PieceReader, name: str, table: SavedTable) -> Iterator[bytes]:
    """The encoded rows, page by page; raises DamagedBackup at the end if they are not those that were saved."""
    digest, rows = hashlib.sha256(), 0
    for piece in table.pieces:
        page = reader.get(piece)
        digest.update(page)
        rows += page.count(b"\n")
        yield page
    if (rows, digest.hexdigest()) != (table.rows, table.digest):
        raise DamagedBackup(
            f"table {name} has {counted(rows, 'row')} with another digest than was saved ({counted(table.rows, 'row')})"
        )


def read_file_list(blobs: BlobStore, manifest: Manifest) -> Iterator[SavedFile]:
    reader = PieceReader(blobs)
    for piece in manifest.file_list:
        yield from manifests.decode_files(reader.get(piece))


def read_pieces(reader: PieceReader, pieces: Iterable[Piece]) -> int:
    """Each different piece once, in the order of packs; returns their bytes."""
    different = sorted(set(pieces), key=lambda piece: (piece.pack, piece.offset))
    return sum(len(reader.get(piece)) for piece in different)
