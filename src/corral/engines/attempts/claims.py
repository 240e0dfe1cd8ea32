"""The claim of an instance: a locked file that shows which supervisor owns the instance, and how the instance ended.

A supervisor creates the file already locked (it locks a temporary file and links that to the final name) and holds the
lock until the instance has ended. So the supervisor is alive exactly as long as the file is locked; a process id would
not prove that, because the kernel reuses ids. The first line of the file names the supervisor, the second one the job's
process (once it runs), the last one how the instance ended. One file with three lines instead of three files is
cheaper, and its block still has space when the disk is full.

The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from enum import Enum
from typing import Any

from corral.engines.attempts.json_files import parse_json, read_bytes, write_all

#: The name of the file in the directory of an instance.
CLAIM = "claim"
_SHORT_MESSAGE = 300


class ClaimState(Enum):
    NONE = "none"
    HELD = "held"
    FREE = "free"


def take_claim(rank_dir: str, body: dict[str, Any]) -> int | None:
    """Become the only supervisor of an instance: returns the locked descriptor, or None if the instance is claimed
    already."""
    temporary = os.path.join(rank_dir, f"{CLAIM}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        add_to_claim(descriptor, body)
        os.link(temporary, os.path.join(rank_dir, CLAIM))
    except FileExistsError:
        os.close(descriptor)
        return None
    finally:
        os.unlink(temporary)
    return descriptor


def add_to_claim(descriptor: int, body: dict[str, Any]) -> None:
    """One write of one line, so that a reader sees all of it or nothing."""
    write_all(descriptor, json.dumps(body).encode() + b"\n")


def record_end(rank_dir: str, body: dict[str, Any]) -> None:
    """Records how an instance ended; it is on the disk when this returns. The instance must have been claimed. If the
    disk is full, a long message is cut so that the record fits into the block of the claim."""
    descriptor = os.open(os.path.join(rank_dir, CLAIM), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        # The line before may be incomplete.
        try:
            write_all(descriptor, b"\n" + json.dumps(body).encode() + b"\n")
        except OSError:
            short = {**body, "message": str(body.get("message", ""))[:_SHORT_MESSAGE]}
            write_all(descriptor, b"\n" + json.dumps(short).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Claim:
    """The supervisor of an instance, the process that it started, and how that ended; empty where it is not (yet)
    recorded."""

    supervisor: dict[str, Any]
    started: dict[str, Any]
    end: dict[str, Any]


def read_claim(rank_dir: str) -> Claim:
    lines = read_bytes(os.path.join(rank_dir, CLAIM)).split(b"\n")
    bodies = [parse_json(line) or {} for line in lines[:-1] if line]  # the last is empty, or incomplete
    ends = [body for body in bodies if "ended_at" in body]
    begun = [body for body in bodies if "ended_at" not in body]
    return Claim(
        supervisor=begun[0] if begun else {},
        started=begun[1] if len(begun) > 1 else {},
        end=ends[0] if ends else {},
    )


def claim_state(rank_dir: str) -> ClaimState:
    try:
        descriptor = os.open(os.path.join(rank_dir, CLAIM), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ClaimState.NONE
    try:
        # Shared, so that two observers never mistake each other for the supervisor.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ClaimState.HELD
    finally:
        os.close(descriptor)
    return ClaimState.FREE
