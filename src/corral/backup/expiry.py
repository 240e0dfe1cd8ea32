"""Removes old backups, and packs that no backup needs any more."""

from __future__ import annotations

from collections.abc import Sequence

from corral.backup import manifest as manifests
from corral.backup.manifest import Manifest
from corral.backup.pieces import PACKS, plain_errors
from corral.backup.verification import read_file_list
from corral.datasets.content.blobs import BlobStore

#: A pack that no manifest names may belong to a backup that is being made.
YOUNG_SECONDS = 86_400.0


def expired(manifests_by_age: Sequence[Manifest], *, keep: int, keep_days: float | None, now: float) -> list[str]:
    """Ids of backups beyond the rules, the oldest first: the `keep` latest stay, and those of the last `keep_days`. The
    latest one always stays."""
    old = manifests_by_age[: -max(1, keep)]
    if keep_days is None:
        return [backup.id for backup in old]
    return [backup.id for backup in old if backup.at < now - keep_days * 86_400]


def remove_backups(blobs: BlobStore, ids: Sequence[str], now: float) -> int:
    """Remove these backups and then every pack that no other one needs; returns the bytes that became free."""
    for backup_id in ids:
        manifests.remove(blobs, backup_id)
    needed = {pack for backup_id in manifests.list_ids(blobs) for pack in _packs_of(blobs, backup_id)}
    freed = 0
    with plain_errors():
        for item in list(blobs.objects(PACKS)):
            if item.name.rsplit("/", 1)[1] not in needed and item.modified_at < now - YOUNG_SECONDS:
                blobs.remove(item.name)
                freed += item.size
        blobs.sweep(now - YOUNG_SECONDS)
    return freed


def _packs_of(blobs: BlobStore, backup_id: str) -> set[str]:
    manifest = manifests.load(blobs, backup_id)
    packs = {piece.pack for table in manifest.tables.values() for piece in table.pieces}
    packs |= {piece.pack for piece in manifest.file_list}
    return packs | {piece.pack for file in read_file_list(blobs, manifest) for piece in file.pieces}
