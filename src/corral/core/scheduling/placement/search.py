"""The search of a place for a job: among the free resources (`find_place`), or in an empty fleet (`could_ever_fit`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from corral.core.fleet.gpu_links import linked
from corral.core.fleet.resources import grant_on
from corral.core.model import WHOLE, Allocation, Grant, Job, NodeState, Request, is_slice
from corral.core.scheduling.placement import POLICIES, PlacementPolicy
from corral.core.snapshot.node_index import EVERYWHERE, DomainIndex, Fleet, Slot, places, union


def domains_for(fleet: Fleet, request: Request, pool: str) -> list[DomainIndex]:
    """The domains that a request may use. A gang never mixes GPU models: it is placed in one domain. A share of a GPU
    is never placed on a slice."""
    if not request.wants_gpu:
        return [fleet.domains[EVERYWHERE]]
    found = fleet.domains_of(pool, request.models)
    return [index for index in found if not is_slice(index.domain[1])] if request.gpu_milli else found


def find_place(fleet: Fleet, job: Job, pool: str, placement: str) -> Allocation | None:
    """An allocation for all instances of the job, each on another node, from the free resources; None if there is
    none."""
    request = job.request
    if job.only_gpus:
        return _exactly(fleet, job, pool)
    policy = POLICIES[placement]
    among = fleet.eligible(request.labels, job.avoid_nodes)
    # Most searches of a crowded cycle find no free GPUs: to count them costs less than to put the domains in order.
    indexes = [
        index
        for index in domains_for(fleet, request, pool)
        if (index.with_room(request) & among).bit_count() >= request.nodes
    ]
    if policy.domain_order is not None:
        indexes = policy.domain_order(fleet, indexes, request, among)
    for index in indexes:
        found = _instances(fleet, index, job, policy, among)
        if found is not None:
            return Allocation(grants=found, model=index.domain[1])
    return None


def _exactly(fleet: Fleet, job: Job, pool: str) -> Allocation | None:
    """The GPUs that a check is for, healthy or not, if they are free and their node takes jobs."""
    homes = {fleet.gpu_home.get(gpu, "") for gpu in job.only_gpus}
    place = fleet.place_of.get(next(iter(homes)))
    if len(homes) != 1 or place is None:
        return None
    slot = fleet.slots[place]
    gpus = [gpu for gpu in slot.node.gpus if gpu.id in job.only_gpus and gpu.pool == pool]
    is_free = all(slot.free_milli[gpu.id] == WHOLE and gpu.id not in slot.node.taken.gpus for gpu in gpus)
    if slot.node.state is not NodeState.READY or len(gpus) != len(job.only_gpus) or not is_free:
        return None
    grant = grant_on(slot.node.id, tuple(gpu.id for gpu in gpus), job.request)
    return Allocation(grants=(grant,), model=gpus[0].model) if has_cpu_and_memory(slot, job.request) else None


def _instances(
    fleet: Fleet, index: DomainIndex, job: Job, policy: PlacementPolicy, among: int
) -> tuple[Grant, ...] | None:
    """A place for every instance, each on another node, the best nodes first; for a gang in as few racks as
    possible."""
    request = job.request
    if request.nodes == 1:
        found = _room(fleet, index, job, policy, among)
        return next(((grant,) for _, grant in found), None)
    fitting = index.with_room(request) & among
    racks = fleet.racks()
    large_enough = [rack for rack in racks if (rack & fitting).bit_count() >= request.nodes]
    if large_enough:
        grants = _in_one_rack(_room(fleet, index, job, policy, among & union(large_enough)), large_enough, request)
        if grants is not None:
            return grants
    room = _room(fleet, index, job, policy, among)
    return _in_few_racks(list(room), racks, request) if racks else _first(room, request)


def _room(
    fleet: Fleet, index: DomainIndex, job: Job, policy: PlacementPolicy, among: int
) -> Iterator[tuple[int, Grant]]:
    """The nodes that have room for one instance, as bits, with the grant there; the best node first."""
    seen = 0
    order = policy.gpu_order
    for place in policy.candidates(fleet, index, job.request, among):
        slot = fleet.slots[place]
        if seen & slot.bit:
            continue  # a node with several shared GPUs comes up more than once
        seen |= slot.bit
        gpus = choose_gpus(slot, index, job, None if order is None else partial(order, fleet, slot))
        if gpus is not None and has_cpu_and_memory(slot, job.request):
            yield slot.bit, grant_on(slot.node.id, gpus, job.request)


def _first(room: Iterator[tuple[int, Grant]], request: Request) -> tuple[Grant, ...] | None:
    grants = tuple(grant for _, grant in islice(room, request.nodes))
    return grants if len(grants) == request.nodes else None


def _in_one_rack(room: Iterator[tuple[int, Grant]], racks: Sequence[int], request: Request) -> tuple[Grant, ...] | None:
    """The grants in the rack that is first to have enough of the best nodes."""
    found: dict[int, list[Grant]] = {rack: [] for rack in racks}
    for bit, grant in room:
        grants = found[next(rack for rack in racks if rack & bit)]
        grants.append(grant)
        if len(grants) == request.nodes:
            return tuple(grants)
    return None


def _in_few_racks(
    room: Sequence[tuple[int, Grant]], racks: Sequence[int], request: Request
) -> tuple[Grant, ...] | None:
    """The racks with the most room first, and of the last rack the best nodes. A node in no rack counts as a rack."""
    if len(room) < request.nodes:
        return None
    found: dict[int, list[Grant]] = {}
    for bit, grant in room:
        found.setdefault(next((rack for rack in racks if rack & bit), bit), []).append(grant)
    grants: list[Grant] = []
    while (missing := request.nodes - len(grants)) > 0:
        holding = [rack for rack, its in found.items() if len(its) >= missing]
        rack = holding[0] if holding else max(found, key=lambda rack: len(found[rack]))
        grants += found.pop(rack)[:missing]
    return tuple(grants)


def choose_gpus(
    slot: Slot, index: DomainIndex, job: Job, order: Callable[[Sequence[str]], list[str]] | None = None
) -> tuple[str, ...] | None:
    """Free GPUs of the node for one instance, linked ones if possible, in the order of the placement policy or the
    lowest index first; None if there are too few."""
    request = job.request
    if request.gpu_milli and order is not None:
        fitting = slot.with_share(index.domain, request.gpu_milli, job.avoid_gpus)
        return tuple(order(fitting)[:1]) or None
    if request.gpu_milli:
        gpu = slot.best_share(index.domain, request.gpu_milli, job.avoid_gpus)
        return None if gpu is None else (gpu,)
    if not request.gpus:
        return ()
    free = slot.whole_gpus(index.domain)
    if job.avoid_gpus:
        free = [gpu for gpu in free if gpu not in job.avoid_gpus]
    if len(free) < request.gpus:
        return None
    if order is None:
        return linked(free, slot.links, request.gpus)
    chosen = set(linked(order(free), slot.links, request.gpus))
    return tuple(gpu for gpu in free if gpu in chosen)


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
    """Whether the job would fit if all usable resources were free."""
    if job.only_gpus:
        return all(gpu in fleet.gpu_home for gpu in job.only_gpus)
    among = fleet.eligible(job.request.labels, job.avoid_nodes)
    for index in domains_for(fleet, job.request, pool):
        fitting = 0
        for place in places(index.members & among):
            fitting += could_hold(fleet.slots[place], index, job)
            if fitting == job.request.nodes:
                return True
    return False
