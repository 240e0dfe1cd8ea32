"""Limits on the jobs' use of the disk, from the settings and the size of the disk."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from corral.server.settings.settings import Settings

#: Shares of the disk: the limit of one job, and the free space that is kept.
_JOB_PART = 0.5
_FREE_PART = 0.05
_FREE_BYTES = 2 * 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskLimits:
    #: limit of one job; None means no limit
    job_bytes: int | None
    job_files: int | None
    #: limit of one job on temporary storage
    temporary_bytes: int | None = None
    #: with less free space no job is launched
    min_free_bytes: int
    #: size of the file that is removed when the disk is full
    reserve_bytes: int


def disk_limits(settings: Settings) -> DiskLimits:
    disk = settings.disk
    total = shutil.disk_usage(settings.home).total
    job_limit = int(total * _JOB_PART) if disk.job_limit is None else disk.job_limit
    min_free = min(int(total * _FREE_PART), _FREE_BYTES) if disk.min_free is None else disk.min_free
    return DiskLimits(
        job_bytes=job_limit or None,
        job_files=disk.job_files or None,
        temporary_bytes=(job_limit if disk.temporary_limit is None else disk.temporary_limit) or None,
        min_free_bytes=min_free,
        reserve_bytes=min(disk.reserve, total // 10),
    )
