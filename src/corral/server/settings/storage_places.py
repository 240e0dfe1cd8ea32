"""Directories of this machine for storage that jobs mount, from the settings."""

from __future__ import annotations

import shutil
from pathlib import Path

from corral.engines.storage.storage_specs import StoragePlaces
from corral.server.settings.settings import Settings

_GIB = 1 << 30
#: Default size of a cache: this size, or this share of the disk if that is less.
_CACHE_BYTES = 50 * _GIB
_CACHE_PART = 0.1


def storage_places(settings: Settings) -> StoragePlaces:
    """Creates the cache's directory, because its size depends on its disk."""
    storage, home = settings.storage, settings.home
    cache = Path(storage.object_cache or home / "object-cache")
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    return StoragePlaces(
        volumes=storage.volumes or str(home / "volumes"),
        scratch=storage.scratch or str(home / "scratch"),
        objects=str(home / "objects"),
        cache=str(cache),
        cache_bytes=storage.object_cache_size or min(_CACHE_BYTES, int(shutil.disk_usage(cache).total * _CACHE_PART)),
        datasets=str(settings.dataset_cache_path),
        dataset_bytes=storage.dataset_cache_size,
    )
