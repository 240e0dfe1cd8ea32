"""The files that an engine writes into its root once, for all its attempts: its id, and the script that nodes run."""

from __future__ import annotations

import secrets
import zlib
from pathlib import Path

from corral.engines.slurm.attempts import run_directory

PROGRAM = "attempt.sh"


def engine_id(root: Path) -> str:
    """A random id: several servers may share a cluster, and their attempts may have the same ids."""
    path = root / "engine-id"
    if (known := run_directory.read_line(path)) is not None:
        return known
    run_directory.write_text(path, f"{secrets.token_hex(4)}\n")
    return run_directory.read_line(path) or ""


def installed_program(root: Path) -> Path:
    """The path of the script for nodes. A new version gets a new name: running jobs read theirs to the end."""
    text = (Path(__file__).parent / PROGRAM).read_text(encoding="utf-8")
    path = root / f"attempt-{zlib.crc32(text.encode()):08x}.sh"
    if not path.exists():
        run_directory.write_text(path, text)
        path.chmod(0o755)
    return path
