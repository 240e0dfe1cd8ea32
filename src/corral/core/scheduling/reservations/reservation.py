"""A reservation as a value. Which jobs it affects is decided in `reservations` and `windows`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """GPUs set aside for some users and groups: for a window of time, or standing."""

    name: str
    pool: str
    gpus: tuple[str, ...]
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    since: float = 0.0
    #: None means that it stands until it is deleted
    until: float | None = None
    #: whether preemptible jobs of others may use what its owners do not; it comes back on demand
    lends: bool = True
