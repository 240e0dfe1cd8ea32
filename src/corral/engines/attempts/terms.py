"""The term of an engine's root: which server may launch and stop attempts there.

A file in the root holds the latest term, which only grows. A server with an older term has been superseded: its
launches and stops have no effect, not even those in progress. Supervisors read the file after they have claimed an
instance. So a new server that has written its term sees every earlier claim, and a later claim of an older launch is
not used. The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import os

#: The name of the file in the root.
TERM = "term"


def read_term(path: str) -> int:
    """0 if no term was ever written."""
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
    """Durable when this returns, before anything is done under the term. A later term stays."""
    if read_term(path) >= term:
        return
    draft = f"{path}.{os.urandom(4).hex()}.tmp"
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
    """Overwrites the term in place, which works on a full disk: the file has a block, and a later term is never
    shorter.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, b"%d\n" % term, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
