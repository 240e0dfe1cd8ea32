"""Directories for tests: made from data, and read back as data."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from corral.datasets import DirectoryBlobs, DirectoryVersions, Repository

#: by path: bytes are a file, ("x", bytes) one that can be run, ("->", target) a link, None an empty directory
Content = bytes | tuple[str, bytes] | tuple[str, str] | None
Files = Mapping[str, Content]


def write_files(root: Path, files: Files) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content[1], bytes):
            path.write_bytes(content[1])
            path.chmod(0o755)
        else:
            path.symlink_to(content[1])
    return root


def read_files(root: Path) -> dict[str, Content]:
    found: dict[str, Content] = {}
    for where, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(where, name)
            status = path.lstat()
            key = path.relative_to(root).as_posix()
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("->", os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                data = path.read_bytes()
                found[key] = ("x", data) if status.st_mode & stat.S_IXUSR else data
            elif not any(path.iterdir()):
                found[key] = None
    return found


def repository_in(folder: Path, **options: object) -> Repository:
    return Repository(
        DirectoryBlobs(folder / "blobs"),
        DirectoryVersions(folder / "versions"),
        cache=folder / "cache",
        **options,  # type: ignore[arg-type]
    )


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that look like nothing, always the same for one seed."""
    return np.random.default_rng(seed).bytes(size)
