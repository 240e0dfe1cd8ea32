"""What is kept of reservations beyond what the scheduler needs to decide."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.scheduling.reservations.reservation import Reservation


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationRecord:
    reservation: Reservation
    #: of all its GPUs
    model: str = ""
    note: str = ""
    #: it has left the picture, and is only listed
    is_over: bool = False
    created_by: str = ""
    created_at: float = 0.0

    @property
    def name(self) -> str:
        return self.reservation.name
