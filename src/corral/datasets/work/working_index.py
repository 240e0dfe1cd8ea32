"""The index of a working directory, so that unchanged files need not be read again.

It is stored in a cache, never in the directory itself, which may be read-only or belong to another user. A wrong index
costs only time: an entry is used only if size, times and inode are exactly the same, and if the file had not changed
for a while when it was read, because within one tick of its clock a file can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from corral.datasets.content.blobs import replace_file
from corral.datasets.history.records import canonical, digest_of
from corral.datasets.work.scan import FoundFile, Stamp

#: The resolution of file system clocks, including those of network file systems.
_REST_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class KnownFile:
    stamp: Stamp
    digest: bytes
    listed: bool


@dataclass(kw_only=True, slots=True)
class WorkingIndex:
    #: the version that was last checked out into it or committed from it
    version: str | None = None
    files: dict[str, KnownFile] = field(default_factory=dict)

    def find(self, file: FoundFile) -> KnownFile | None:
        known = self.files.get(file.path)
        return known if known is not None and known.stamp == file.stamp else None


def index_path(cache: Path, directory: Path) -> Path:
    name = hashlib.blake2b(str(directory.resolve()).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return cache / "working" / name


def load_index(path: Path) -> WorkingIndex:
    """The saved index; an empty one if there is none or it is damaged."""
    try:
        seal, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return WorkingIndex()
    if seal.decode("ascii", "replace") != digest_of(body).hex():
        return WorkingIndex()
    body = json.loads(body)
    files = {
        name: KnownFile(Stamp(*stamp), bytes.fromhex(digest), listed)
        for name, (stamp, digest, listed) in body["files"].items()
    }
    return WorkingIndex(version=body["version"], files=files)


def save_index(path: Path, version: str | None, files: Mapping[str, KnownFile], *, read_at_ns: int) -> None:
    """Keep the files that had not changed for a while when the reading began."""
    rested = {
        name: [[*_numbers(known.stamp)], known.digest.hex(), known.listed]
        for name, known in files.items()
        if max(known.stamp.mtime_ns, known.stamp.ctime_ns) < read_at_ns - _REST_NS
    }
    body = canonical({"version": version, "files": rested})
    replace_file(path, digest_of(body).hex().encode() + b"\n" + body)


def _numbers(stamp: Stamp) -> tuple[int, int, int, int]:
    return stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode
