"""The kind of file system below a path. SQLite and file locks are not reliable on network file systems."""

from __future__ import annotations

import os
import re
from pathlib import Path

#: Types in the kernel's list of mounts; those of FUSE have the name of the program behind the dot.
NETWORK_TYPES = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "sshfs", "virtiofs"}
)
_MOUNTS = Path("/proc/self/mounts")
_ESCAPE = re.compile(r"\\(\d{3})")


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system that the path is on; None for a local one. `mounts` is the kernel's list."""
    if mounts is None:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    where = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        _, mounted, type_, *_ = line.split(" ")
        mounted = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), mounted)
        # The last of several mounts at one place is the visible one.
        if os.path.commonpath([where, mounted]) == mounted and len(mounted) >= len(best):
            best, kind = mounted, type_.removeprefix("fuse.")
    return kind if kind in NETWORK_TYPES else None
