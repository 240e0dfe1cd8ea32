"""The sections of `corral.yaml` about the disk: limits of jobs, retention, and threads for heavy reading."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.server.settings.sections.section_base import Section, Size


class DiskSettings(Section):
    #: limit of one job on the disk: its directories, working directories and temporary files; 0: no limit;
    #: default: half of the disk of the home directory
    job_limit: Size | None = None
    #: limit of one job on temporary storage: its temporary directory, and what it changes in its image; at 90 % of it
    #: the job is evicted; 0: no limit; default: as `job_limit`
    temporary_limit: Size | None = None
    #: limit of one job on the number of files and directories; 0: no limit
    job_files: Annotated[int, Field(ge=0)] = 2_000_000
    #: with less free space no job is launched and no upload begins; default: 5 %, at most 2 GiB
    min_free: Size | None = None
    #: a file in the home directory that is removed when the disk is full, so that the store can still write
    reserve: Size = 64 * 2**20


class RetentionSettings(Section):
    #: ended jobs are removed after so many days, with their directories and logs; null: never
    jobs_days: Annotated[float, Field(gt=0, le=36_500)] | None = 365.0
    #: … and if there are more than this number, those that ended first; null: no limit
    jobs_count: Annotated[int, Field(ge=1)] | None = 1_000_000
    #: … and while all of them together use more disk space than this; null: no limit
    jobs_size: Size | None = None
    #: the files of ended attempts are packed once nothing was launched for so long, and every hour
    fold_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    #: retention of the audit log; null: for ever
    events_days: Annotated[float, Field(gt=0, le=36_500)] | None = 400.0


class ReadingSettings(Section):
    #: threads for checksums, archives, downloads and searches
    threads: Annotated[int, Field(ge=1, le=256)] = 8
    #: … at most so many of them for one user
    per_user: Annotated[int, Field(ge=1, le=256)] = 2
    #: longest time that one request reads
    deadline_seconds: Annotated[float, Field(ge=1, le=86_400)] = 3600.0
    #: longest time that an attempt waits for the check of its checkpoint
    checkpoint_seconds: Annotated[float, Field(ge=1, le=86_400)] = 900.0
