"""The free GPUs: a job could start on them now.

A GPU is free if no job holds any part of it, it is healthy and not used outside of corral, its node is ready, and it
is not reserved for other users. Every count of free GPUs, in the API, the command line, the metrics, the alerts and the
console, comes from here.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from corral.core.scheduling.reservations.windows import in_force, is_active, owns
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Strategy
from corral.core.snapshot.node_index import EVERYWHERE, Slot


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeGpus:
    """The unheld, usable GPUs, in two disjoint sets."""

    free: Set[str]
    #: idle, but only the owners of a reservation may start jobs on them, and other users at most as borrowers
    reserved: Set[str]


def free_gpus(snapshot: ClusterSnapshot, now: float, user: str | None = None) -> FreeGpus:
    """The GPUs that are free for this user, including those reserved for the user; without a user, for one without
    reservations.
    """
    idle = {gpu for slot in snapshot.fleet.slots for gpu in idle_gpus(slot)}
    reserved = idle & closed_gpus(snapshot, now, user)
    return FreeGpus(free=idle - reserved, reserved=reserved)


def idle_gpus(slot: Slot) -> list[str]:
    """The usable GPUs of a node that no job holds any part of. Those of them that are not closed are free."""
    return slot.whole_gpus(EVERYWHERE)


def closed_gpus(snapshot: ClusterSnapshot, now: float, user: str | None = None) -> Set[str]:
    """GPUs that are reserved now and not for this user, held or not, lent or not."""
    own: set[str] = set()
    others: set[str] = set()
    for reservation in in_force(snapshot, now):
        if is_active(reservation, now):
            is_own = user is not None and owns(snapshot, reservation, user)
            (own if is_own else others).update(reservation.gpus)
    if snapshot.allocation.strategy is Strategy.STATIC:
        # A GPU without a reservation is open to no user.
        others = {gpu.id for node in snapshot.nodes.values() for gpu in node.gpus}
    return others - own
