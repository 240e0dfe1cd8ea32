"""The sections of `corral.yaml` about the disk: what jobs may take of it, how long it is kept, and how it is read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.server.settings.sections import Section, Size


class DiskSettings(Section):
    #: what one job may have on the disk: its directories, working directories and temporary files; 0: no limit;
    #: without it: half of the disk that the home directory is on
    job_limit: Size | None = None
    #: how many files and directories that may be; 0: no limit
    job_files: Annotated[int, Field(ge=0)] = 2_000_000
    #: with less free than this nothing is launched and no upload begins; without it: 5 %, at most 2 GiB
    min_free: Size | None = None
    #: a file in the home directory that is given up when the disk is full, so that the store can still write
    reserve: Size = 64 * 2**20


class RetentionSettings(Section):
    #: finished jobs go after so many days, with their directories and logs; none: never
    jobs_days: Annotated[float, Field(gt=0, le=36_500)] | None = 365.0
    #: … and beyond so many, the one that ended first before others; none: any number
    jobs_count: Annotated[int, Field(ge=1)] | None = 1_000_000
    #: … and while all of them together have more than this on the disk; none: any size
    jobs_size: Size | None = None
    #: the files of ended attempts are put together once nothing was launched for so long, and every hour
    fold_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    #: how long the audit log is kept; none: for ever
    events_days: Annotated[float, Field(gt=0, le=36_500)] | None = 400.0


class ReadingSettings(Section):
    #: threads for checksums, archives, downloads and searches
    threads: Annotated[int, Field(ge=1, le=256)] = 8
    #: … of which one user has at most so many
    per_user: Annotated[int, Field(ge=1, le=256)] = 2
    #: the longest that one request reads
    deadline_seconds: Annotated[float, Field(ge=1, le=86_400)] = 3600.0
    #: the longest that an attempt waits for its checkpoint to be verified
    checkpoint_seconds: Annotated[float, Field(ge=1, le=86_400)] = 900.0
