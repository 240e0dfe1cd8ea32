"""The manifest of a backup: what it holds, and in which pieces."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from corral.backup.errors import BackupError, DamagedBackup
from corral.backup.pieces import Piece, plain_errors
from corral.datasets.content.blobs import BlobStore
from corral.datasets.errors import ObjectMissing

FORMAT = 1
BACKUPS = "backups/"
ABOUT = "corral-backups.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedTable:
    columns: tuple[str, ...]
    rows: int
    #: digest of all encoded rows in the order of the primary key
    digest: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedFile:
    """One name below the home. A directory and a link have no content."""

    path: str
    kind: str
    mode: int
    uid: int
    gid: int
    size: int = 0
    #: by these three a later backup knows that the content is the same
    modified_ns: int = 0
    inode: int = 0
    target: str = ""
    pieces: tuple[Piece, ...] = ()

    def is_same_file(self, other: SavedFile) -> bool:
        return (self.kind, self.size, self.modified_ns, self.inode) == (
            other.kind,
            other.size,
            other.modified_ns,
            other.inode,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    id: str
    #: when the view of the store was taken
    at: float
    corral: str
    #: kind and schema of the store
    store: Mapping[str, str]
    installation: str
    host: str
    home: str
    tables: Mapping[str, SavedTable]
    #: number and bytes of files; their list is in pieces of its own
    files: int
    file_bytes: int
    file_list: tuple[Piece, ...]
    #: the configuration, as it was; None if it is sealed, or if there is no file
    settings: str | None
    #: key file and configuration, encrypted with a passphrase; None without a passphrase
    sealed: Mapping[str, Any] | None
    #: whether the home had a key file
    has_key: bool
    #: what the backup does not hold
    left_out: tuple[str, ...] = ()
    #: bytes that this backup added to the archive, and seconds that it took
    written: int = 0
    seconds: float = field(default=0.0)


def save(blobs: BlobStore, manifest: Manifest) -> None:
    body = asdict(manifest)
    body["tables"] = {
        name: {**asdict(table), "pieces": [piece.plain() for piece in table.pieces]}
        for name, table in manifest.tables.items()
    }
    body["file_list"] = [piece.plain() for piece in manifest.file_list]
    text = json.dumps({"format": FORMAT, **body}, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    with plain_errors():
        blobs.put(_name(manifest.id), [f"{digest}\n{text}\n".encode()])


def load(blobs: BlobStore, backup_id: str) -> Manifest:
    """Raises BackupError, or DamagedBackup."""
    try:
        with plain_errors():
            data = blobs.get(_name(backup_id))
    except ObjectMissing:
        raise BackupError(f"there is no backup {backup_id!r} in {blobs.where}") from None
    digest, _, text = data.decode("utf-8", "replace").partition("\n")
    text = text.removesuffix("\n")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise DamagedBackup(f"the manifest of backup {backup_id} is damaged")
    body = json.loads(text)
    if (found := body.pop("format")) != FORMAT:
        raise BackupError(f"backup {backup_id} has format {found}, and this corral knows {FORMAT}: use a newer corral")
    tables = {
        name: SavedTable(
            columns=tuple(table["columns"]),
            rows=table["rows"],
            digest=table["digest"],
            pieces=_pieces(table["pieces"]),
        )
        for name, table in body.pop("tables").items()
    }
    file_list, left_out = _pieces(body.pop("file_list")), tuple(body.pop("left_out"))
    return Manifest(**body, tables=tables, file_list=file_list, left_out=left_out)


def list_ids(blobs: BlobStore) -> list[str]:
    """Ids of complete backups, the oldest first."""
    with plain_errors():
        names = [item.name for item in blobs.objects(BACKUPS)]
    return sorted(name[len(BACKUPS) : -len(".json")] for name in names if name.endswith(".json"))


def remove(blobs: BlobStore, backup_id: str) -> None:
    with plain_errors():
        blobs.remove(_name(backup_id))


def claim_place(blobs: BlobStore, installation: str) -> None:
    """Mark a new archive as this installation's. Raises BackupError for an archive of another one."""
    try:
        with plain_errors():
            owner = json.loads(blobs.get(ABOUT))["installation"]
    except ObjectMissing:
        with plain_errors():
            blobs.put(ABOUT, [json.dumps({"format": FORMAT, "installation": installation}).encode()])
        return
    if owner != installation:
        raise BackupError(f"{blobs.where} holds backups of another installation ({owner}): use a place of its own")


def encode_files(files: Sequence[SavedFile]) -> bytes:
    lines = []
    for file in files:
        body = {**asdict(file), "pieces": [piece.plain() for piece in file.pieces]}
        lines.append(json.dumps({key: value for key, value in body.items() if value}, separators=(",", ":")))
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def decode_files(data: bytes) -> Iterator[SavedFile]:
    empty = SavedFile(path="", kind="file", mode=0, uid=0, gid=0)
    for line in data.splitlines():
        body = json.loads(line)
        yield replace(empty, **{**body, "pieces": _pieces(body.get("pieces", ()))})


def _name(backup_id: str) -> str:
    return f"{BACKUPS}{backup_id}.json"


def _pieces(plain: Sequence[Sequence[Any]]) -> tuple[Piece, ...]:
    return tuple(Piece(*values) for values in plain)
