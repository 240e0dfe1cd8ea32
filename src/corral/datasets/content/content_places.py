"""Opens a store of bytes from its description, which a process or a node receives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.datasets.content.blobs import BlobStore, DirectoryBlobs, FilesystemBlobs
from corral.objects.access import ObjectAccess, open_filesystem


def open_blobs(description: Mapping[str, Any]) -> BlobStore:
    """Opens `{"kind": "directory", "path": …}` or `{"kind": "object", "access": …}`. Raises NotReachable."""
    if description["kind"] == "directory":
        return DirectoryBlobs(Path(description["path"]))
    access = ObjectAccess.from_dict(description["access"])
    return FilesystemBlobs(open_filesystem(access), access.root)
