"""A reservation as a value. Which jobs it affects is decided in `reservations` and `windows`."""

from __future__ import annotations

from dataclasses import dataclass

#: Names with this prefix are reservations that the strategy `hybrid` makes by itself.
SHARE_PREFIX = "share-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """GPUs reserved for users and groups: for a window of time, or standing."""

    name: str
    pool: str
    gpus: tuple[str, ...]
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    since: float = 0.0
    #: None for a standing reservation, until it is deleted
    until: float | None = None
    #: whether preemptible jobs of other users may use GPUs that the owners do not use; they are reclaimed on demand
    lends: bool = True

    @property
    def is_share(self) -> bool:
        """Whether the strategy `hybrid` has made it: reservations of operators may take its GPUs."""
        return self.name.startswith(SHARE_PREFIX)
