"""Logs that nodes append to: read by offset, and limited in size while their writers continue.

Bytes over the limit are punched out of the beginning of the file, so that offsets stay the same. If the file system
cannot do that, logs grow without a limit.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import logging
import os
from collections.abc import Callable
from typing import BinaryIO

from corral.control.ports import EngineUnavailable, LogChunk
from corral.engines.slurm.attempts.run_directory import (
    LOG,
    Layout,
    NotPlain,
    folded_log,
    has_folded_log,
    is_safe_id,
    log_start,
    open_of_job,
    open_plain,
    read_line,
    write_text,
)
from corral.engines.slurm.attempts.slurm_attempt import Attempt

log = logging.getLogger("corral.engines.slurm")

_KEEP_SIZE_AND_PUNCH = 0x01 | 0x02
_BLOCK = 4096
_libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)


def read_log(place: str, offset: int, limit: int) -> tuple[bytes, int, int]:
    """Bytes from an offset on (negative: counted from the end), the next offset, and the end. Raises EngineUnavailable
    if the job has closed its log or the directory of its log."""
    try:
        with _opened(place) as file:
            end = os.fstat(file.fileno()).st_size
            start = max(_start(place), end + offset if offset < 0 else offset)
            file.seek(start)
            data = file.read(min(limit, max(0, end - start)))
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return b"", max(0, offset), 0
    except PermissionError as error:
        raise EngineUnavailable(f"the log cannot be read: {error.strerror}") from error
    return data, start + len(data), end


def _opened(place: str) -> BinaryIO:
    try:
        return open_of_job(f"{place}/{LOG}")
    except (FileNotFoundError, NotADirectoryError):
        return open_plain(folded_log(place))


def trim_log(layout: Layout, attempt: Attempt, limit_bytes: int) -> None:
    for rank in range(len(attempt.nodes)):
        place = layout.place(attempt.id, rank)
        try:
            _trim(place, limit_bytes)
        except (FileNotFoundError, NotPlain):
            continue
        except OSError as error:
            log.info("the log in %s cannot be shortened: %s", place, error)


def _trim(place: str, limit_bytes: int) -> None:
    with open_of_job(f"{place}/{LOG}", to_write=True) as file:
        size, start = os.fstat(file.fileno()).st_size, _start(place)
        if size - start <= limit_bytes:
            return
        # Half of the limit is kept, in whole blocks, so that this happens rarely.
        keep_from = (size - limit_bytes // 2) // _BLOCK * _BLOCK
        write_text(log_start(place), f"{keep_from}\n")
        done = _libc.fallocate(file.fileno(), _KEEP_SIZE_AND_PUNCH, ctypes.c_long(0), ctypes.c_long(keep_from))
        if done != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _start(place: str) -> int:
    return int(read_line(log_start(place)) or 0)


class SlurmLogs:
    """Implements `corral.control.ports.AttemptLogs`, for a server that stands by and has no engine."""

    def __init__(self, layout: Layout, is_over: Callable[[str], bool]) -> None:
        self._layout = layout
        self._is_over = is_over

    def has(self, attempt_id: str) -> bool:
        if not is_safe_id(attempt_id):
            return False
        first = self._layout.place(attempt_id, 0)
        return os.path.exists(first) or has_folded_log(first)

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        # Checked before reading: nothing is written to the log after the end.
        is_over = self._is_over(attempt_id)
        data, next_offset, end = read_log(self._layout.place(attempt_id, rank), offset, max(1, limit))
        return LogChunk(data=data, next_offset=next_offset, at_end=is_over and next_offset >= end)
