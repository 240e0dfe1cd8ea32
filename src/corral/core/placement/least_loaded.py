"""`least-loaded`: the node with the lowest measured load first.

What was given out since the measurement counts as load too; otherwise a burst of jobs would all land on the node that
happened to be idle when it was last looked at. Without a measurement the allocated part is the load.
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.core.fleet import DomainIndex, Fleet, Slot, places
from corral.core.model import WHOLE, Request


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    if request.gpu_milli:
        fitting = (index.with_whole(1) | index.with_share(request.gpu_milli)) & among
    else:
        fitting = index.with_whole(request.gpus) & among
    yield from sorted(places(fitting), key=lambda place: (expected_load(fleet.slots[place]), place))


def expected_load(slot: Slot) -> float:
    measured = slot.node.load or 0.0
    if not slot.free_milli:
        return measured
    allocated = 1.0 - sum(slot.free_milli.values()) / (WHOLE * len(slot.free_milli))
    return max(measured, allocated)
