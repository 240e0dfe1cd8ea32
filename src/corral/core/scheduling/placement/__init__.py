"""Placement policies: which of the nodes with room is used first. One file per policy, one line in the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from corral.core.model import Request
from corral.core.scheduling.placement import fragmentation, least_loaded, pack, round_robin, spread
from corral.core.snapshot.node_index import DomainIndex, Fleet, Slot


class PlacementPolicy(Protocol):
    def __call__(self, fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
        """The places, within the set `among`, of nodes whose free GPUs hold one instance, best first.
        CPUs and memory are checked by the caller. Nothing of the fleet changes while it is iterated."""


class DomainOrder(Protocol):
    def __call__(self, fleet: Fleet, indexes: Sequence[DomainIndex], request: Request, among: int) -> list[DomainIndex]:
        """All the domains, the one to be tried first at the beginning."""


class GpuOrder(Protocol):
    def __call__(self, fleet: Fleet, slot: Slot, gpus: Sequence[str]) -> list[str]:
        """These GPUs of the node, the one to be used first at the beginning."""


#: every policy by the name that queues and settings use
POLICIES: dict[str, PlacementPolicy] = {
    "fragmentation": fragmentation.candidates,
    "pack": pack.candidates,
    "spread": spread.candidates,
    "round-robin": round_robin.candidates,
    "least-loaded": least_loaded.candidates,
}

#: the order of the GPU models, for policies that do not use the order of their names
DOMAIN_ORDERS: dict[str, DomainOrder] = {"fragmentation": fragmentation.domains}

#: the order of the GPUs within a node, for policies that do not use the lowest index and the fullest shared GPU first
GPU_ORDERS: dict[str, GpuOrder] = {"round-robin": round_robin.gpus, "least-loaded": least_loaded.gpus}
