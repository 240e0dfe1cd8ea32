"""The section of `corral.yaml` about backups."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from corral.server.settings.sections.section_base import Section, Size
from corral.server.settings.sections.section_rules import whole_path


def backup_place(text: str) -> str:
    """A directory, or a bucket with a prefix."""
    scheme, mark, rest = text.partition("://")
    if mark:
        if scheme not in ("s3", "gs") or not rest.strip("/"):
            raise ValueError("write a directory, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX")
        return text.rstrip("/")
    return whole_path(text)


class BackupSettings(Section):
    #: where backups go: a directory on another disk, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; empty: none are made
    to: Annotated[str, AfterValidator(backup_place)] = ""
    #: how often the server makes one; null: only `corral backup create` does
    every_hours: Annotated[float, Field(gt=0, le=8760)] | None = 24.0
    #: so many backups are kept, …
    keep: Annotated[int, Field(ge=1, le=10_000)] = 14
    #: … and those of the last days, if this is set
    keep_days: Annotated[float, Field(gt=0, le=36_500)] | None = None
    #: files of jobs: outputs, also checkpoints, all of their directories, or none
    jobs: Literal["none", "outputs", "checkpoints", "all"] = "outputs"
    #: larger files of jobs are left out and named in the backup
    max_file_size: Size = 2**30
    #: logs of attempts that ran on this machine
    logs: bool = True
    #: the metric history, if it is kept in the home
    metrics: bool = False
    #: a file with the passphrase that encrypts the key file and the configuration; without it the key file is left out
    passphrase_file: Annotated[str, AfterValidator(whole_path)] = ""
    #: address of the bucket's service; empty: Amazon or Google
    endpoint: Annotated[str, Field(max_length=500)] = ""
    #: the region of the bucket
    region: Annotated[str, Field(max_length=100)] = ""
    #: the access key of the bucket
    access_key: Annotated[str, Field(max_length=500)] = ""
    #: a file with the secret of the access key
    key_file: Annotated[str, AfterValidator(whole_path)] = ""
