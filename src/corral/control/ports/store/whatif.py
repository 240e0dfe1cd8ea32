"""Tables of simulations and of the differences of a shadow policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from corral.control.records import DifferenceRecord, Page, SimulationRecord


class SimulationTable(Protocol):
    def next_id(self) -> str:
        """An id that is never used again: s-1, s-2, …"""

    def get(self, simulation_id: str) -> SimulationRecord | None: ...

    def result(self, simulation_id: str) -> Mapping[str, Any] | None:
        """The result of a simulation; None until it is ready."""

    def page(self, *, cursor: str | None, limit: int) -> Page[SimulationRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def save(self, record: SimulationRecord) -> None:
        """Insert or replace by id, without touching the result."""

    def save_result(self, simulation_id: str, result: Mapping[str, Any]) -> None:
        """Stores the result of an existing simulation."""

    def delete(self, simulation_ids: Sequence[str]) -> None: ...

    def unfinished(self) -> list[SimulationRecord]:
        """Waiting and working ones, oldest first."""

    def ids(self) -> list[str]:
        """Newest first."""


class ShadowTable(Protocol):
    """The differences that the shadow policy would have made."""

    def add(self, differences: Sequence[DifferenceRecord]) -> None:
        """Insert or replace by cycle."""

    def newest(self, limit: int) -> list[DifferenceRecord]: ...

    def clear(self) -> None: ...

    def keep(self, most: int) -> int:
        """Drop all but the newest; how many went."""
