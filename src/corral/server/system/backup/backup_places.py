"""The archive that the settings name: a directory or a bucket."""

from __future__ import annotations

from pathlib import Path

from corral.backup.errors import BackupError
from corral.datasets.content.blobs import BlobStore, DirectoryBlobs, FilesystemBlobs
from corral.objects.access import NotReachable, ObjectAccess, open_filesystem
from corral.server.settings.sections.backup_section import BackupSettings

_KINDS = {"s3": "s3", "gs": "gcs"}


def open_archive(settings: BackupSettings, *, make: bool) -> BlobStore:
    """Raises BackupError. With `make`, a missing directory is created; only its owner can read it."""
    if not settings.to:
        raise BackupError("no place for backups is set: give --to or --from, or set backup.to in corral.yaml")
    scheme, mark, rest = settings.to.partition("://")
    if mark:
        return _open_bucket(settings, _KINDS[scheme], rest)
    root = Path(settings.to)
    try:
        if make:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not root.is_dir():
            raise BackupError(f"there is no directory {root}")
    except OSError as error:
        raise BackupError(f"{root} cannot be used: {error.strerror}") from error
    return DirectoryBlobs(root)


def passphrase_of(settings: BackupSettings) -> str | None:
    """The passphrase; None if no file is set. Raises BackupError."""
    return _secret(settings.passphrase_file, "passphrase") if settings.passphrase_file else None


def _open_bucket(settings: BackupSettings, kind: str, place: str) -> BlobStore:
    bucket, _, prefix = place.partition("/")
    access = ObjectAccess(
        kind=kind,
        bucket=bucket,
        prefix=prefix.strip("/"),
        endpoint=settings.endpoint or None,
        region=settings.region,
        access_key=settings.access_key,
        secret=_secret(settings.key_file, "secret") if settings.key_file else "",
    )
    try:
        return FilesystemBlobs(open_filesystem(access), access.root)
    except NotReachable as error:
        raise BackupError(str(error)) from error


def _secret(path: str, what: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"the {what} cannot be read from {path}: {error}") from error
    if not text:
        raise BackupError(f"the {what} in {path} is empty")
    return text
