"""Tables of volumes and object stores."""

from __future__ import annotations

from typing import Protocol

from corral.control.records import ObjectStoreRecord, VolumeRecord


class VolumeTable(Protocol):
    """Volumes, and the buckets that some of them are parts of."""

    def next_id(self) -> str:
        """The id of the next volume; none is ever given twice."""

    def all(self) -> list[VolumeRecord]:
        """The oldest first."""

    def get(self, volume_id: str) -> VolumeRecord | None: ...

    def named(self, name: str) -> list[VolumeRecord]:
        """Every owner's of this name, the oldest first."""

    def of_owner(self, owner: str) -> list[VolumeRecord]:
        """The oldest first."""

    def save(self, volume: VolumeRecord) -> None:
        """Insert or replace by id. Raises StoreConflict when its owner has another one of this name."""

    def delete(self, volume_id: str) -> None: ...

    def object_stores(self) -> list[ObjectStoreRecord]:
        """Sorted by name."""

    def object_store(self, name: str) -> ObjectStoreRecord | None: ...

    def save_object_store(self, store: ObjectStoreRecord) -> None:
        """Insert or replace by name."""

    def delete_object_store(self, name: str) -> None: ...
