"""Makes a backup: tables, then files, then the manifest. Everything new is read back before the manifest is written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from corral.backup import manifest as manifests
from corral.backup.file_scan import FileScan, Selection
from corral.backup.manifest import Manifest, SavedFile, SavedTable
from corral.backup.pieces import Piece, PieceReader, PieceWriter, read_in_pieces
from corral.backup.verification import read_file_list, read_pieces
from corral.datasets.content.blobs import BlobStore

#: Files whose descriptions share a piece of the list: unchanged ones give the same piece again.
_LISTED_TOGETHER = 1000


class TableSource(Protocol):
    """One table as the store has it: pages of encoded rows in a fixed order."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Sequence[str]: ...

    def pages(self) -> Iterable[bytes]: ...

    def counted(self) -> tuple[int, str]:
        """The number of rows and their digest, once all pages were read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupContent:
    """The content of a backup, besides files."""

    id: str
    at: float
    corral: str
    store: Mapping[str, str]
    installation: str
    host: str
    home: Path
    tables: Iterable[TableSource]
    selections: Sequence[Selection]
    settings: str | None
    sealed: Mapping[str, Any] | None
    has_key: bool
    #: copies of files that cannot be read while they are written to, by their path below the home
    copies: Mapping[str, Path] = field(default_factory=dict)
    left_out: Sequence[str] = ()


def create_backup(blobs: BlobStore, content: BackupContent) -> Manifest:
    manifests.claim_place(blobs, content.installation)
    before = _latest(blobs)
    listed = {} if before is None else {file.path: file for file in read_file_list(blobs, before)}
    known = [] if before is None else _pieces_of(before, listed.values())
    writer = PieceWriter(blobs, known)
    tables = {table.name: _save_table(writer, table) for table in content.tables}
    scan = FileScan(content.home, writer, listed.get)
    files = [file for selection in content.selections for file in scan.save(selection)]
    files += [_save_copy(writer, path, copy) for path, copy in content.copies.items()]
    file_list = writer.add_all(map(manifests.encode_files, _batches(files)))
    writer.flush()
    made = Manifest(
        id=content.id,
        at=content.at,
        corral=content.corral,
        store=content.store,
        installation=content.installation,
        host=content.host,
        home=str(content.home),
        tables=tables,
        files=len(files),
        file_bytes=sum(file.size for file in files),
        file_list=file_list,
        settings=content.settings,
        sealed=content.sealed,
        has_key=content.has_key,
        left_out=(*content.left_out, *scan.left_out),
        written=writer.written,
    )
    new = set(writer.packs)
    read_pieces(PieceReader(blobs), (piece for piece in _pieces_of(made, files) if piece.pack in new))
    manifests.save(blobs, made)
    return manifests.load(blobs, made.id)


def _save_table(writer: PieceWriter, table: TableSource) -> SavedTable:
    pieces = writer.add_all(table.pages())
    rows, digest = table.counted()
    return SavedTable(columns=tuple(table.columns), rows=rows, digest=digest, pieces=pieces)


def _save_copy(writer: PieceWriter, path: str, copy: Path) -> SavedFile:
    with copy.open("rb") as file:
        pieces = writer.add_all(read_in_pieces(file))
    size = sum(piece.size for piece in pieces)
    return SavedFile(path=path, kind="file", mode=0o600, uid=0, gid=0, size=size, pieces=pieces)


def _latest(blobs: BlobStore) -> Manifest | None:
    ids = manifests.list_ids(blobs)
    return manifests.load(blobs, ids[-1]) if ids else None


def _pieces_of(manifest: Manifest, files: Iterable[SavedFile]) -> Iterator[Piece]:
    for table in manifest.tables.values():
        yield from table.pieces
    yield from manifest.file_list
    for file in files:
        yield from file.pieces


def _batches(files: Sequence[SavedFile]) -> Iterator[list[SavedFile]]:
    items = iter(files)
    while batch := list(itertools.islice(items, _LISTED_TOGETHER)):
        yield batch
