"""Tables of datasets: where they are kept, their versions, who used them, and long work on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from corral.control.records import (
    DatasetRecord,
    DatasetTargetRecord,
    DatasetUse,
    OperationRecord,
    Page,
    TagRecord,
    VersionRecord,
)


class DatasetTable(Protocol):
    # ---------------------------------------------------------------- targets

    def targets(self) -> list[DatasetTargetRecord]:
        """The targets by name, without the built-in one."""

    def save_target(self, target: DatasetTargetRecord) -> None:
        """Insert or replace by name."""

    def delete_target(self, name: str) -> None: ...

    # ---------------------------------------------------------------- datasets

    def next_id(self) -> str:
        """An id that is never used again: d-1, d-2, …"""

    def all(self) -> list[DatasetRecord]:
        """All datasets, sorted by name, then owner."""

    def get(self, dataset_id: str) -> DatasetRecord | None: ...

    def find(self, owner: str, name: str) -> DatasetRecord | None: ...

    def save(self, dataset: DatasetRecord) -> None:
        """Insert or replace by id. Raises NameTaken."""

    def delete(self, dataset_id: str) -> None:
        """Deletes the dataset with its versions, tags and operations. The records of its use are kept."""

    # ---------------------------------------------------------------- versions

    def add_versions(self, versions: Sequence[VersionRecord]) -> None:
        """Adds versions. Raises StoreConflict if one of them exists, or another one has its place in the line."""

    def version(self, dataset_id: str, version: str) -> VersionRecord | None:
        """Finds a version by its whole id."""

    def versions_like(self, dataset_id: str, prefix: str, limit: int) -> list[VersionRecord]:
        """The versions whose id starts with `prefix`, newest first."""

    def log(self, dataset_id: str, *, before: int | None, limit: int) -> list[VersionRecord]:
        """Newest first; those before a place in the line."""

    def heads(self, dataset_ids: Collection[str]) -> dict[str, VersionRecord]:
        """The newest version of each that has one."""

    def tags(self, dataset_ids: Collection[str]) -> list[TagRecord]:
        """The tags of these datasets, sorted by tag."""

    def save_tag(self, tag: TagRecord) -> None:
        """Insert, or let it mean another version."""

    def delete_tag(self, dataset_id: str, tag: str) -> None: ...

    # ---------------------------------------------------------------- who used them

    def add_uses(self, uses: Sequence[DatasetUse]) -> None:
        """Adds uses; existing ones are not changed."""

    def uses(self, dataset_id: str, *, version: str | None = None, limit: int) -> list[DatasetUse]:
        """The latest first."""

    def uses_of_job(self, job_id: str) -> list[DatasetUse]: ...

    def produced_by(self, job_id: str) -> list[VersionRecord]: ...

    def mounted_by(self, dataset_id: str) -> list[str]:
        """The jobs that are not over and mount a version of it, oldest first."""

    # ---------------------------------------------------------------- long work

    def next_operation_id(self) -> str:
        """e-1, e-2, …"""

    def operation(self, operation_id: str) -> OperationRecord | None: ...

    def operations(
        self, *, target: str | None, dataset: str | None, cursor: str | None, limit: int
    ) -> Page[OperationRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def unfinished_operations(self) -> list[OperationRecord]:
        """Waiting and working ones, oldest first."""

    def save_operation(self, operation: OperationRecord) -> None:
        """Insert or replace by id."""

    def keep_operations(self, most: int) -> int:
        """Drop all but the newest of those that are over; how many went."""
