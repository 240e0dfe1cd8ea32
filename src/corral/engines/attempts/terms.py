"""The term of an engine's place: which server may give orders there.

A file in the place holds the latest term. It only grows. A server with an older one has been superseded: its launches
and stops come to nothing, also those that were under way. Supervisors look at it after they have claimed an instance,
so a new server that has written its term sees every claim that was made before, and none is made use of after.
Used by the spawner too, so only the standard library is imported here.
"""

from __future__ import annotations

import os
import secrets

#: The name of the file in the place.
TERM = "term"


def read_term(path: str) -> int:
    """0 if none was ever written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0
    try:
        return int(os.read(descriptor, 32) or b"0")
    except ValueError:
        return 0  # the machine lost power while it was written
    finally:
        os.close(descriptor)


def write_term(path: str, term: int) -> None:
    """Durably, before anything is done under it. A later term stays."""
    if read_term(path) >= term:
        return
    draft = f"{path}.{secrets.token_hex(4)}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, b"%d\n" % term)
        os.fsync(descriptor)
    except OSError:
        os.unlink(draft)
        _overwrite_term(path, term)
        return
    finally:
        os.close(descriptor)
    os.rename(draft, path)


def _overwrite_term(path: str, term: int) -> None:
    """On a full disk: the file has a block, and a later term is never shorter."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, b"%d\n" % term, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
