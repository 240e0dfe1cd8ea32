"""Tables of what scheduling keeps beside jobs."""

from __future__ import annotations

from typing import Protocol

from corral.control.records import ReservationRecord


class ReservationTable(Protocol):
    def all(self) -> list[ReservationRecord]:
        """Sorted by name; those that are over too, until they are pruned."""

    def get(self, name: str) -> ReservationRecord | None: ...

    def save(self, record: ReservationRecord) -> None:
        """Insert or replace by name."""

    def delete(self, name: str) -> None: ...

    def prune(self, before: float) -> int:
        """Drop those that ended earlier."""
