"""Tables of reservations, maintenance windows and past estimates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from corral.control.records import MaintenanceRecord, ReservationRecord
from corral.core.scheduling.forecast.accuracy import PastEstimate


class EstimateTable(Protocol):
    """Estimated starts and what became of them. Rows outlive their jobs."""

    def add(self, estimates: Sequence[PastEstimate]) -> None:
        """Insert or replace by job and time."""

    def open(self) -> list[PastEstimate]:
        """The estimates of jobs that have not started, oldest first."""

    def settle(self, started: Mapping[tuple[str, int], float]) -> None:
        """When these attempts (by job and number) started; only of estimates that are open."""

    def withdraw(self, attempts: Collection[tuple[str, int]]) -> None:
        """Deletes the open estimates of attempts that will never start."""

    def latest(self, limit: int, since: float = 0.0) -> list[PastEstimate]:
        """The latest estimates, oldest first."""

    def prune(self, before: float) -> int:
        """Drop those made earlier."""


class ReservationTable(Protocol):
    def all(self) -> list[ReservationRecord]:
        """Sorted by name; those that are over too, until they are pruned."""

    def get(self, name: str) -> ReservationRecord | None: ...

    def save(self, record: ReservationRecord) -> None:
        """Insert or replace by name."""

    def delete(self, name: str) -> None: ...

    def prune(self, before: float) -> int:
        """Drop those that ended earlier."""


class MaintenanceTable(Protocol):
    def all(self) -> list[MaintenanceRecord]:
        """Sorted by name."""

    def save(self, record: MaintenanceRecord) -> None:
        """Insert or replace by name."""

    def delete(self, name: str) -> None: ...
