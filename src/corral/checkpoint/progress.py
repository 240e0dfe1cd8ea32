"""How far a program has come: one small file beside its checkpoints, which the platform reads.

The file is overwritten in place, with a constant length: a reader never sees half a record, and the directory's time
stamp, by which the platform notices new checkpoints, stays as it is.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

#: in the checkpoint directory
PROGRESS = ".progress"
_LENGTH = 64
_RECORD = re.compile(rb"([0-9]{1,18}) ([0-9]{1,9}) ([0-9]{1,12}\.[0-9]{3}) *\n")
_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class Progress:
    """The steps that are done, by which attempt, and when the last of them was done."""

    step: int
    attempt: int
    at: float


def write_progress(directory: Path, progress: Progress) -> None:
    """Raises OSError."""
    record = f"{progress.step} {progress.attempt} {progress.at:.3f}".ljust(_LENGTH - 1) + "\n"
    descriptor = os.open(directory / PROGRESS, _FLAGS, 0o644)
    try:
        os.pwrite(descriptor, record.encode(), 0)
    finally:
        os.close(descriptor)


def parse_progress(record: bytes) -> Progress | None:
    """Parses a record. None for anything else: a program can write any bytes."""
    match = _RECORD.fullmatch(record) if len(record) == _LENGTH else None
    if match is None:
        return None
    step, attempt, at = match.groups()
    return Progress(step=int(step), attempt=int(attempt), at=float(at))
