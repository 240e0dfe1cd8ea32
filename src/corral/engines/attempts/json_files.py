"""Small JSON files of the engines: replaced as a whole, so that a crash leaves the old content or the new content.

The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import json
import os
from typing import Any

_CHUNK_BYTES = 1 << 14


def write_json(path: str, body: dict[str, Any], *, durable: bool = False) -> None:
    """Replace the file as a whole; `durable` also waits for the disk."""
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, json.dumps(body).encode())
        if durable:
            os.fsync(descriptor)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    os.rename(temporary, path)


def write_all(descriptor: int, data: bytes) -> None:
    """A disk that becomes full accepts a part of the data, and refuses the rest at the next call."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_json(path: str) -> dict[str, Any] | None:
    """The file's content, or None if there is no file or it is damaged (after a loss of power)."""
    return parse_json(read_bytes(path).partition(b"\n")[0])


def read_bytes(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        data = os.read(descriptor, _CHUNK_BYTES)
        while len(data) % _CHUNK_BYTES == 0 and (more := os.read(descriptor, _CHUNK_BYTES)):
            data += more
        return data
    finally:
        os.close(descriptor)


def parse_json(data: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(data)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
