"""Placement policies: which of the nodes with room is used first. One file per policy, one entry in the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from corral.core.model import Request
from corral.core.scheduling.placement import fragmentation, least_loaded, pack, round_robin, spread
from corral.core.snapshot.node_index import DomainIndex, Fleet, Slot


class Candidates(Protocol):
    def __call__(self, fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
        """The places, within the set `among`, of nodes whose free GPUs hold one instance, best first.
        CPUs and memory are checked by the caller. Nothing of the fleet changes while it is iterated."""


class DomainOrder(Protocol):
    def __call__(self, fleet: Fleet, indexes: Sequence[DomainIndex], request: Request, among: int) -> list[DomainIndex]:
        """All the domains, the one to be tried first at the beginning."""


class GpuOrder(Protocol):
    def __call__(self, fleet: Fleet, slot: Slot, gpus: Sequence[str]) -> list[str]:
        """Sorts these GPUs of the node by the order in which they are used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementPolicy:
    candidates: Candidates
    #: which node the policy uses first, as text for users
    description: str
    #: the order of the GPU models; None if the policy uses the order of their names
    domain_order: DomainOrder | None = None
    #: the order of the GPUs within a node; None if the lowest index and the fullest shared GPU come first
    gpu_order: GpuOrder | None = None


#: every policy by the name that queues and settings use, the default one first
POLICIES: dict[str, PlacementPolicy] = {
    "fragmentation": PlacementPolicy(
        candidates=fragmentation.candidates,
        description="the node where the fewest GPUs become unusable for the requests of this cluster",
        domain_order=fragmentation.domains,
    ),
    "pack": PlacementPolicy(
        candidates=pack.candidates,
        description="the fullest node with room, so that whole nodes stay free",
        domain_order=pack.domains,
    ),
    "spread": PlacementPolicy(candidates=spread.candidates, description="the emptiest node"),
    "round-robin": PlacementPolicy(
        candidates=round_robin.candidates, description="one node after the other", gpu_order=round_robin.gpus
    ),
    "least-loaded": PlacementPolicy(
        candidates=least_loaded.candidates,
        description="the node with the lowest measured load",
        gpu_order=least_loaded.gpus,
    ),
}
