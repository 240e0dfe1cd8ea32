"""The files that an engine writes into its root once, for all its attempts: its id, its key, and the script that nodes
run.

Id and key are in every backup: by them the engine of a restored server finds its Slurm jobs again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import zlib
from pathlib import Path

from corral.engines.slurm.attempts import run_directory

PROGRAM = "attempt.sh"


def engine_id(root: Path) -> str:
    """A random id: several servers may share a cluster, and their attempts may have the same ids."""
    return _kept(root / "engine-id", secrets.token_hex(4))


def engine_key(root: Path) -> bytes:
    """Makes the secrets in the names of Slurm jobs; only the server can read it."""
    return _kept(root / "engine-key", secrets.token_hex(32)).encode()


def job_secret(key: bytes, attempt_id: str) -> str:
    """The secret in the name of an attempt's Slurm job: no user can have given a job that name before, and a restored
    server can check it without a record of the attempt."""
    return hmac.new(key, attempt_id.encode(), hashlib.sha256).hexdigest()[:16]


def _kept(path: Path, fresh: str) -> str:
    """The line of the file, which is written if it is missing."""
    if (known := run_directory.read_line(path)) is not None:
        return known
    run_directory.write_text(path, f"{fresh}\n")
    return run_directory.read_line(path) or ""


def installed_program(root: Path) -> Path:
    """The path of the script for nodes. A new version gets a new name: running jobs read theirs to the end."""
    text = (Path(__file__).parent / PROGRAM).read_text(encoding="utf-8")
    path = root / f"attempt-{zlib.crc32(text.encode()):08x}.sh"
    if not path.exists():
        run_directory.write_text(path, text)
        path.chmod(0o755)
    return path
