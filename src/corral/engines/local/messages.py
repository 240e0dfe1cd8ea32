"""What the engine tells the spawner: one length-prefixed JSON message per instance to start.

Used by the spawner too, so only the standard library is imported here.
"""

from __future__ import annotations

import json
import struct
from typing import TypedDict

_LENGTH = struct.Struct("!I")
#: More than any command and environment that the kernel takes (2 MiB, here in escaped form).
MAX_MESSAGE_BYTES = 32 << 20


class InstanceSpec(TypedDict):
    """Everything a supervisor needs; it never asks back."""

    attempt_id: str
    rank: int
    attempt_dir: str
    rank_dir: str
    events_path: str
    boot_id: str
    command: list[str]
    env: dict[str, str]
    #: "" means the run directory's own
    workdir: str
    time_limit_seconds: float | None
    grace_seconds: float
    log_limit_bytes: int
    memory_bytes: int
    cpu_milli: int
    cgroup_version: int
    cgroup_memory: str
    cgroup_cpu: str
    cgroup_name: str


def encode(spec: InstanceSpec) -> bytes:
    body = json.dumps(spec).encode()
    return _LENGTH.pack(len(body)) + body


class BadFrame(Exception):
    """The stream is out of step: nothing after this point can be read."""


def take_frames(buffer: bytearray) -> list[bytes]:
    """Remove and give the complete messages at the beginning of the buffer."""
    frames: list[bytes] = []
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        if length > MAX_MESSAGE_BYTES:
            raise BadFrame(f"a message of {length} bytes")
        if len(buffer) < _LENGTH.size + length:
            break
        frames.append(bytes(buffer[_LENGTH.size : _LENGTH.size + length]))
        del buffer[: _LENGTH.size + length]
    return frames
