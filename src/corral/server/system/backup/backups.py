"""Backups of one home and its store: what they hold, which are kept, and how they are listed.

The same functions serve `corral backup` and the schedule of the server. A backup never delays a writer: the store is
read in one view of its own.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from corral.backup import manifest as manifests
from corral.backup.creation import BackupContent, create_backup
from corral.backup.errors import BackupError
from corral.backup.expiry import expired, remove_backups
from corral.backup.file_scan import Selection
from corral.backup.manifest import Manifest
from corral.backup.sealing import seal
from corral.datasets.content.blobs import BlobStore
from corral.server.auth.secret_box import KEY_FILE
from corral.server.settings.settings import Settings
from corral.server.system.backup.backup_places import open_archive, passphrase_of
from corral.server.wiring.monitoring_assembly import HISTORY_FILE
from corral.stores.copying.store_dump import StoreDump, dumped
from corral.stores.database.errors import StoreError
from corral.stores.database.opening import open_database

_LOCK = "backup.lock"
#: the parts of a job's directory, by rule
_JOB_FOLDERS = {"outputs": ("outputs",), "checkpoints": ("outputs", "checkpoints")}
#: logs of the local engine, before and after folding
_LOG = re.compile(r"(\d+\.)?log\.\d+|over")


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupResult:
    manifest: Manifest
    #: ids of backups that were removed by retention, and bytes that became free
    removed: Sequence[str]
    freed: int


def make_backup(settings: Settings, *, passphrase: str | None = None) -> BackupResult:
    """Raises BackupError or StoreError. Without a passphrase, that of the settings is used, if there is one."""
    rules = settings.backup
    started = time.monotonic()
    with _alone(settings.home):
        blobs = open_archive(rules, make=True)
        database = open_database(settings.database_url)
        try:
            with dumped(database) as dump, TemporaryDirectory(prefix="corral-backup-") as folder:
                content = _content(settings, dump, Path(folder), passphrase or passphrase_of(rules))
                made = create_backup(blobs, content)
        finally:
            database.dispose()
        made = replace(made, seconds=round(time.monotonic() - started, 3))
        manifests.save(blobs, made)
        removed, freed = _expire(blobs, settings, made.at)
    return BackupResult(manifest=made, removed=removed, freed=freed)


def list_backups(blobs: BlobStore) -> list[Manifest]:
    """The oldest first."""
    return [manifests.load(blobs, backup_id) for backup_id in manifests.list_ids(blobs)]


def delete_backups(settings: Settings, ids: Sequence[str]) -> int:
    """Returns the bytes that became free."""
    blobs = open_archive(settings.backup, make=False)
    known = manifests.list_ids(blobs)
    if unknown := [backup_id for backup_id in ids if backup_id not in known]:
        raise BackupError(f"there is no backup {unknown[0]!r} in {blobs.where}")
    with _alone(settings.home):
        return remove_backups(blobs, ids, time.time())


def find_backup(blobs: BlobStore, backup_id: str | None) -> Manifest:
    """The latest one without an id. Raises BackupError."""
    ids = manifests.list_ids(blobs)
    if not ids:
        raise BackupError(f"{blobs.where} holds no backup")
    return manifests.load(blobs, backup_id or ids[-1])


def _content(settings: Settings, dump: StoreDump, folder: Path, passphrase: str | None) -> BackupContent:
    at = time.time()
    key = settings.home / KEY_FILE
    text = settings.config_file.read_text(encoding="utf-8") if settings.config_file is not None else None
    has_key = key.is_file()
    secret = {KEY_FILE: key.read_text(encoding="ascii") if has_key else "", "corral.yaml": text or ""}
    left_out = ["content of volumes and datasets: they stay where they are; their catalogue is in the store"]
    if has_key and passphrase is None:
        left_out.append(f"{KEY_FILE}: no passphrase is set; keep a copy of the file apart")
    if settings.backup.jobs != "all":
        left_out.append(f"directories of jobs beyond the rule backup.jobs: {settings.backup.jobs}")
    copies = _history_copy(settings, folder) if settings.backup.metrics else {}
    if not copies:
        left_out.append("the metric history")
    return BackupContent(
        # Ids are in the order of time, also of backups that follow each other within a second.
        id=f"{datetime.fromtimestamp(at, UTC):%Y%m%dT%H%M%S.%f}Z-{secrets.token_hex(2)}",
        at=at,
        corral=version("corral"),
        store={"kind": dump.kind, "schema": dump.schema},
        installation=dump.installation,
        host=socket.gethostname(),
        home=settings.home.resolve(),
        tables=dump.tables,
        selections=list(_selections(settings)),
        settings=None if passphrase else text,
        sealed=seal(secret, passphrase) if passphrase else None,
        has_key=has_key,
        copies=copies,
        left_out=left_out,
    )


def _selections(settings: Settings) -> Iterator[Selection]:
    rules = settings.backup
    if rules.jobs != "none":
        folders = _JOB_FOLDERS.get(rules.jobs)

        def is_of_job(parts: Sequence[str]) -> bool:
            """<shard>/<job>/<folder>/…; the server's keys beside the directories of jobs are left out."""
            if parts[0].startswith("."):
                return False
            if len(parts) == 2 and parts[1] and parts[1].endswith(".key"):
                return False
            return folders is None or len(parts) < 3 or not parts[2] or parts[2] in folders

        yield Selection(folder="jobs", wanted=is_of_job, max_file_bytes=rules.max_file_size)
    if rules.logs:
        yield Selection(folder="local/runs", wanted=_is_log)
    yield Selection(folder="kubernetes", wanted=_is_engine_id)
    yield Selection(folder="slurm", wanted=_is_engine_id)
    yield Selection(folder="reports")
    yield Selection(folder="simulations")


def _is_engine_id(parts: Sequence[str]) -> bool:
    """<cluster>/engine-id: by it, and by the key of a Slurm engine, a restored server finds the pods and Slurm jobs
    that still run."""
    return len(parts) == 2 and parts[1] in ("", "engine-id", "engine-key")


def _is_log(parts: Sequence[str]) -> bool:
    """<shard>/<attempt>/[<rank>/]<file>; directories end with an empty name."""
    if not parts[-1]:
        return len(parts) <= 3 or (len(parts) == 4 and parts[2].isdigit())
    return len(parts) in (3, 4) and _LOG.fullmatch(parts[-1]) is not None


def _history_copy(settings: Settings, folder: Path) -> dict[str, Path]:
    """A consistent copy of a file that is being written to."""
    source = settings.home / HISTORY_FILE
    if not source.is_file():
        return {}
    copy = folder / HISTORY_FILE
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(copy)) as target:
        original.backup(target)
    return {HISTORY_FILE: copy}


def _expire(blobs: BlobStore, settings: Settings, now: float) -> tuple[list[str], int]:
    rules = settings.backup
    ids = expired(list_backups(blobs), keep=rules.keep, keep_days=rules.keep_days, now=now)
    return ids, remove_backups(blobs, ids, now) if ids else 0


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One backup of a home at a time."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise BackupError(f"another backup of {home} is being made") from None
    try:
        yield
    finally:
        os.close(file)


__all__ = ["BackupResult", "StoreError", "delete_backups", "find_backup", "list_backups", "make_backup"]
