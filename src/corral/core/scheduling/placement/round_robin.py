"""`round-robin`: each node in turn, starting after the one that was used last; and within a node each GPU in turn.

The GPU position advances when the turn comes back to the first nodes: n1/0, n2/0, n1/1, n2/1 and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.core.model import Request
from corral.core.snapshot.node_index import DomainIndex, Fleet, Slot, places


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    fitting = index.with_room(request) & among
    up_to_last = (1 << (fleet.last_place + 1)) - 1
    yield from places(fitting & ~up_to_last)
    yield from places(fitting & up_to_last)


def gpus(fleet: Fleet, slot: Slot, gpus: Sequence[str]) -> list[str]:
    is_new_turn = fleet.place_of[slot.node.id] <= fleet.last_place
    begin = fleet.last_position + is_new_turn
    position = {gpu: place for place, gpu in enumerate(slot.free_milli)}
    return sorted(gpus, key=lambda gpu: (position[gpu] < begin, position[gpu]))
