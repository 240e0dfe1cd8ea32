"""Records of reservations, with fields that the scheduler does not need, and of maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.scheduling.reservations.reservation import Reservation


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationRecord:
    reservation: Reservation
    #: model of all its GPUs
    model: str = ""
    note: str = ""
    #: it has left the snapshot, and is only listed
    is_over: bool = False
    created_by: str = ""
    created_at: float = 0.0

    @property
    def name(self) -> str:
        return self.reservation.name


@dataclass(frozen=True, kw_only=True, slots=True)
class MaintenanceRecord:
    """Times in which nodes have no jobs. `since` and `until` are those of the present occurrence, or of the next."""

    name: str
    nodes: tuple[str, ...]
    since: float
    until: float
    #: days from one occurrence to the next; None: there is only one
    every_days: int | None = None
    #: how long before `since` the nodes stop to take new jobs
    drain_seconds: float = 0.0
    note: str = ""
    created_by: str = ""
    created_at: float = 0.0
    #: the nodes that were drained for the present occurrence
    begun: tuple[str, ...] = ()

    @property
    def drains_at(self) -> float:
        return self.since - self.drain_seconds
