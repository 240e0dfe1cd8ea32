"""Opening a place for bytes from words, as a process or a node is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.datasets.content.blobs import BlobStore, DirectoryBlobs, FilesystemBlobs
from corral.objects.access import ObjectAccess, open_filesystem


def open_blobs(words: Mapping[str, Any]) -> BlobStore:
    """From `{"kind": "directory", "path": …}` or `{"kind": "object", "access": …}`. Raises NotReachable."""
    if words["kind"] == "directory":
        return DirectoryBlobs(Path(words["path"]))
    access = ObjectAccess.from_words(words["access"])
    return FilesystemBlobs(open_filesystem(access), access.root)
