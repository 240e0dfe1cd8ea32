"""Errors of backups, with messages for operators."""

from __future__ import annotations


class BackupError(Exception):
    """The backup cannot be made, read or restored."""


class DamagedBackup(BackupError):
    """Something in the archive is missing or is not what was written."""
