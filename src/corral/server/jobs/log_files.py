"""Logs as files to save: one as it is, several as an archive."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

from corral.control.ports import LogSource, OutputMember
from corral.core.model import Job, attempt_id
from corral.server.http import archives
from corral.server.http.downloads import Download, Through
from corral.server.jobs.log_lines import CHUNK_BYTES

#: Longer logs are buffered on the disk; they are rare.
_IN_MEMORY_BYTES = 4 << 20


def log_download(engine: LogSource, job: Job, attempt: int, rank: int, through: Through) -> Download:
    return Download(through(_pieces(engine, job, attempt, rank)), log_name(job, attempt, rank))


def logs_download(engine: LogSource, job: Job, logs: Sequence[tuple[int, int]], through: Through) -> Download:
    pieces = archives.tar_gz(_members(engine, job, logs))
    return Download(through(pieces), f"{job.name}-logs.tar.gz", media_type=archives.MEDIA_TYPE)


def log_name(job: Job, attempt: int, rank: int) -> str:
    return f"{job.name}-attempt-{attempt}-rank-{rank}.log"


def _members(engine: LogSource, job: Job, logs: Sequence[tuple[int, int]]) -> Iterator[OutputMember]:
    """Each log is read before it is sent: the archive needs its length first, and a live log still grows."""
    for attempt, rank in logs:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as spool:
            for piece in _pieces(engine, job, attempt, rank):
                spool.write(piece)
            size = spool.tell()
            spool.seek(0)
            yield OutputMember(
                name=f"{job.name}-logs/{log_name(job, attempt, rank)}",
                is_directory=False,
                size_bytes=size,
                modified_at=job.ended_at or job.started_at or job.created_at,
                target=None,
                pieces=_read(spool),
            )


def _read(spool: IO[bytes]) -> Iterator[bytes]:
    while piece := spool.read(CHUNK_BYTES):
        yield piece


def _pieces(engine: LogSource, job: Job, attempt: int, rank: int) -> Iterator[bytes]:
    """Yields the log in pieces; no pieces before the first attempt."""
    offset, is_over = 0, not attempt
    while not is_over:
        chunk = engine.logs(attempt_id(job.id, attempt), rank, offset, CHUNK_BYTES)
        if chunk.data:
            yield chunk.data
        offset, is_over = chunk.next_offset, not chunk.data
