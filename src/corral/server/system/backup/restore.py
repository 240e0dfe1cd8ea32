"""Restores a backup into an empty home and an empty database.

Nothing is overwritten. The restored store still belongs to the home that was backed up: the server here starts with
`--take-over`, which declares that the former one does not run. It looks for living attempts first, launches nothing
that was planned before the restore, and gives no number that the former store may have given since the backup.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from corral.backup.errors import BackupError
from corral.backup.file_restore import restore_files
from corral.backup.manifest import Manifest
from corral.backup.pieces import PieceReader
from corral.backup.sealing import unseal
from corral.backup.verification import Verified, read_file_list, table_pages, verify_backup
from corral.control.live.restored_store import RESTORED_AT
from corral.datasets.content.blobs import BlobStore
from corral.server.auth.secret_box import KEY_FILE
from corral.server.settings.settings import Settings
from corral.server.settings.shown_settings import without_password
from corral.server.wiring.home_lock import HomeLock, HomeLocked
from corral.stores.copying.store_dump import SKIPPED_IDS, TableContent, check_empty, load_store
from corral.stores.database.database import Database
from corral.stores.database.opening import open_database

_CONFIG = "corral.yaml"
#: Only a home in which a server was at work has this file.
_STATE = "home-id"


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    manifest: Manifest
    verified: Verified
    database: str
    home: str
    #: whether this was a rehearsal
    is_rehearsal: bool
    #: what the operator has to provide, or what is gone
    missing: Sequence[str]


def restore(
    settings: Settings,
    blobs: BlobStore,
    manifest: Manifest,
    *,
    passphrase: str | None = None,
    rehearse: bool = False,
    skipped_ids: int = SKIPPED_IDS,
) -> Restored:
    """Raises BackupError or StoreError. A rehearsal reads and compares everything, in a temporary database, and leaves
    home and database as they are."""
    secrets = _secrets(manifest, passphrase)
    home = settings.home
    _check_home(home)
    if settings.database_url != f"sqlite:///{home / 'corral.db'}" or (home / "corral.db").exists():
        with _opened(settings.database_url) as database:
            check_empty(database)
    verified = verify_backup(blobs, manifest)
    reader = PieceReader(blobs)
    if rehearse:
        with TemporaryDirectory(prefix="corral-restore-") as folder:
            _fill(f"sqlite:///{folder}/corral.db", manifest, reader, skipped_ids)
    else:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = HomeLock(home)
        except HomeLocked as locked:
            raise BackupError(str(locked)) from None
        try:
            # Files before the store: a restore that was interrupted leaves no store, and can be repeated.
            restore_files(home, read_file_list(blobs, manifest), reader)
            _put_secrets(home, settings, secrets)
            _fill(settings.database_url, manifest, reader, skipped_ids)
        finally:
            lock.release()
    return Restored(
        manifest=manifest,
        verified=verified,
        database=str(without_password(settings.database_url)),
        home=str(home),
        is_rehearsal=rehearse,
        missing=_missing(manifest, settings, secrets),
    )


def _fill(url: str, manifest: Manifest, reader: PieceReader, skipped_ids: int) -> None:
    tables = {
        name: TableContent(
            columns=table.columns, rows=table.rows, digest=table.digest, pages=table_pages(reader, name, table)
        )
        for name, table in manifest.tables.items()
    }
    notes = {RESTORED_AT: repr(max(time.time(), manifest.at)), "restored.backup": manifest.id}
    with _opened(url) as database:
        load_store(database, manifest.store["schema"], tables, notes, skipped=skipped_ids)


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    database = open_database(url)
    try:
        yield database
    finally:
        database.dispose()


def _check_home(home: Path) -> None:
    """Raises BackupError for a home that a server has used."""
    if (home / _STATE).exists():
        raise BackupError(f"{home} is the home of a server: restore into an empty one (--home), nothing is overwritten")


def _secrets(manifest: Manifest, passphrase: str | None) -> Mapping[str, str]:
    if manifest.sealed is not None:
        if passphrase is None:
            raise BackupError("the key file and the configuration of this backup are encrypted: give the passphrase")
        return unseal(manifest.sealed, passphrase)
    return {_CONFIG: manifest.settings or ""}


def _put_secrets(home: Path, settings: Settings, secrets: Mapping[str, str]) -> None:
    """The key file, unless there is one; the configuration beside it, for an operator to compare."""
    if (key := secrets.get(KEY_FILE)) and not (home / KEY_FILE).exists():
        _write_privately(home / KEY_FILE, key)
    if text := secrets.get(_CONFIG):
        name = _CONFIG if settings.config_file is None else f"{_CONFIG}.restored"
        _write_privately(home / name, text)


def _write_privately(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _missing(manifest: Manifest, settings: Settings, secrets: Mapping[str, str]) -> list[str]:
    found = [*manifest.left_out]
    if manifest.has_key and not secrets.get(KEY_FILE) and not (settings.home / KEY_FILE).exists():
        found.append(f"put {KEY_FILE} of {manifest.home} into {settings.home}: stored secrets need it")
    found.append(f"jobs and changes after {manifest.id}")
    return found
