"""`least-loaded`: the node with the lowest measured load first, and on it the GPUs with the lowest measured load.

Allocations since the measurement count as load too; otherwise a burst of jobs would all go to the node that happened to
be idle at the last measurement. Without a measurement the allocated part is the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.core.model import WHOLE, Request
from corral.core.snapshot.node_index import DomainIndex, Fleet, Slot


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    fitting = index.with_room(request) & among
    yield from sorted(index.places(fitting, request.gpus), key=lambda place: expected_load(fleet.slots[place]))


def gpus(fleet: Fleet, slot: Slot, gpus: Sequence[str]) -> list[str]:
    measured = dict(slot.node.gpu_loads)

    def load(gpu: str) -> float:
        return max(measured.get(gpu, 0.0), 1.0 - slot.free_milli[gpu] / WHOLE)

    return sorted(gpus, key=load)


def expected_load(slot: Slot) -> float:
    measured = slot.node.load or 0.0
    if not slot.free_milli:
        return measured
    allocated = 1.0 - sum(slot.free_milli.values()) / (WHOLE * len(slot.free_milli))
    return max(measured, allocated)
