"""Finding a place for a job: now (`find_place`), or at all (`could_ever_fit`)."""

from __future__ import annotations

from corral.core.fleet import EVERYWHERE, DomainIndex, Fleet, Slot, places
from corral.core.model import Allocation, Grant, Job, Request
from corral.core.placement import DOMAIN_ORDERS, POLICIES, PlacementPolicy
from corral.core.resources import grant_on

#: The label that tells where a node stands: instances of a gang talk to each other, and do so best within a rack.
RACK = "rack"


def domains_for(fleet: Fleet, request: Request, pool: str) -> list[DomainIndex]:
    """Where a request may be placed. A gang never mixes models: it is placed in one domain or in the next."""
    if not request.wants_gpu:
        return [fleet.domains[EVERYWHERE]]
    return fleet.domains_of(pool, request.models)


def find_place(fleet: Fleet, job: Job, pool: str, placement: str) -> Allocation | None:
    """An allocation for all instances of the job from what is free now, each on a node of its own; or nothing."""
    request = job.request
    candidates = POLICIES[placement]
    among = fleet.eligible(request.labels, job.avoid_nodes)
    indexes = domains_for(fleet, request, pool)
    if placement in DOMAIN_ORDERS:
        indexes = DOMAIN_ORDERS[placement](fleet, indexes, request, among)
    for index in indexes:
        found = _instances(fleet, index, job, candidates, among)
        if found is not None:
            return Allocation(grants=found, model=index.domain[1])
    return None


def _instances(
    fleet: Fleet, index: DomainIndex, job: Job, candidates: PlacementPolicy, among: int
) -> tuple[Grant, ...] | None:
    """Nodes of one rack as soon as a rack has enough of them; else the first ones, wherever they stand."""
    request = job.request
    grants: list[Grant] = []
    racks: dict[str, list[Grant]] = {}
    seen = 0
    for place in candidates(fleet, index, request, among):
        slot = fleet.slots[place]
        if seen & slot.bit:
            continue  # a node with several shared GPUs comes up more than once
        gpus = choose_gpus(slot, index, job)
        if gpus is None or not has_cpu_and_memory(slot, request):
            continue
        grant = grant_on(slot.node.id, gpus, request)
        if request.nodes == 1:
            return (grant,)
        seen |= slot.bit
        grants.append(grant)
        rack = racks.setdefault(_rack_of(slot), [])
        rack.append(grant)
        if len(rack) == request.nodes:
            return tuple(rack)
    return tuple(grants[: request.nodes]) if len(grants) >= request.nodes else None


def _rack_of(slot: Slot) -> str:
    """What its label says; nodes that say nothing stand together."""
    return next((value for name, value in slot.node.labels if name == RACK), "")


def choose_gpus(slot: Slot, index: DomainIndex, job: Job) -> tuple[str, ...] | None:
    """Free GPUs of the node for one instance, lowest index first; nothing if there are too few."""
    request = job.request
    if request.gpu_milli:
        gpu = slot.best_share(index.domain, request.gpu_milli, job.avoid_gpus)
        return None if gpu is None else (gpu,)
    if not request.gpus:
        return ()
    free = slot.whole_gpus(index.domain)
    if job.avoid_gpus:
        free = [gpu for gpu in free if gpu not in job.avoid_gpus]
    return tuple(free[: request.gpus]) if len(free) >= request.gpus else None


def has_cpu_and_memory(slot: Slot, request: Request) -> bool:
    return (not request.cpu_milli or slot.free_cpu_milli >= request.cpu_milli) and (
        not request.memory_bytes or slot.free_memory_bytes >= request.memory_bytes
    )


def could_hold(slot: Slot, index: DomainIndex, job: Job) -> bool:
    """Whether one instance would fit on the node if the node were empty."""
    request = job.request
    usable = [gpu for gpu in slot.domains.get(index.domain, ()) if gpu not in job.avoid_gpus]
    return (
        len(usable) >= (1 if request.gpu_milli else request.gpus)
        and slot.node.cpu_milli >= request.cpu_milli
        and slot.node.memory_bytes >= request.memory_bytes
    )


def could_ever_fit(fleet: Fleet, job: Job, pool: str) -> bool:
    """Whether the job would fit if everything usable were free."""
    among = fleet.eligible(job.request.labels, job.avoid_nodes)
    for index in domains_for(fleet, job.request, pool):
        fitting = 0
        for place in places(index.members & among):
            fitting += could_hold(fleet.slots[place], index, job)
            if fitting == job.request.nodes:
                return True
    return False
