"""The free resources of all nodes, indexed so that finding a place does not look at every node.

Nodes have one fixed order (by their names, numbers compared as numbers), and a set of nodes is an integer whose bits
are places in that order. For each domain - a pool and a GPU model - nodes are kept in buckets by how many whole GPUs
are free, and by how many each of their link groups has free. `take` and `give_back` touch the bits of one node only.
Equal content gives equal answers, whatever the order of the changes was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from corral.core.fleet.gpu_links import free_in_groups, linked
from corral.core.model import (
    WHOLE,
    Allocation,
    Gpu,
    Grant,
    Node,
    NodeState,
    Request,
    Taken,
    is_slice,
)
from corral.core.snapshot.installation import DEFAULT_RACK_LABEL
from corral.core.snapshot.request_mix import Mix

#: A pool and a GPU model.
Domain = tuple[str, str]
#: Free GPUs of a node in a domain: whole GPUs, the rests of GPUs in part use, and whole GPUs per link group
#: (ascending).
Free = tuple[int, tuple[int, ...], tuple[int, ...]]
#: The domain of jobs without GPUs: all ready nodes, in buckets by their free GPUs.
EVERYWHERE: Domain = ("", "")


class Oversubscribed(Exception):
    """More was taken than exists: a bug, or a node that lost resources while they were held."""


class Watcher(Protocol):
    """Data that a policy derives from the free resources of a domain and keeps between two uses."""

    #: the places of nodes that may have changed since the last use
    touched: set[int]


class DomainIndex:
    """The nodes of one domain by their free GPUs."""

    __slots__ = ("domain", "free_gpus", "linked", "members", "partial", "whole")

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        #: whole[k]: the nodes with exactly k whole GPUs free
        self.whole: list[int] = [0]
        #: partial[m]: the nodes that have a GPU in part use with m thousandths left
        self.partial: dict[int, int] = {}
        #: linked[k]: the nodes that have a link group with exactly k whole GPUs free; empty where no links are known
        self.linked: dict[int, int] = {}
        self.members = 0
        #: whole GPUs free in the domain
        self.free_gpus = 0

    def with_whole(self, count: int) -> int:
        """The nodes that have at least `count` whole GPUs free."""
        found = 0
        for bits in self.whole[count:]:
            found |= bits
        return found

    def with_room(self, request: Request) -> int:
        """The nodes whose free GPUs hold one instance."""
        if request.gpu_milli:
            return self.with_whole(1) | self.with_share(request.gpu_milli)
        return self.with_whole(request.gpus)

    def with_share(self, milli: int) -> int:
        """The nodes that have a GPU in part use with at least that much left."""
        found = 0
        for left, bits in self.partial.items():
            if left >= milli:
                found |= bits
        return found

    def places(self, bits: int, gpus: int) -> Iterator[int]:
        """The places of a set of nodes that are equally good for so many whole GPUs except for their links: first nodes
        with a link group for all of the GPUs, those with the fewest to spare first."""
        if gpus and self.linked:
            for count in sorted(count for count in self.linked if count >= gpus):
                yield from places(bits & self.linked[count])
                bits &= ~self.linked[count]
        yield from places(bits)

    def enter(self, bit: int, free_whole: int, partial: Iterable[int], linked: Iterable[int]) -> None:
        while len(self.whole) <= free_whole:
            self.whole.append(0)
        self.members |= bit
        self.whole[free_whole] |= bit
        self.free_gpus += free_whole
        for left in partial:
            self.partial[left] = self.partial.get(left, 0) | bit
        for count in linked:
            self.linked[count] = self.linked.get(count, 0) | bit

    def leave(self, bit: int, free_whole: int, partial: Iterable[int], linked: Iterable[int]) -> None:
        self.members &= ~bit
        self.whole[free_whole] &= ~bit
        self.free_gpus -= free_whole
        for left in partial:
            _take_bit(self.partial, left, bit)
        for count in linked:
            _take_bit(self.linked, count, bit)


class Slot:
    """One node and its free resources."""

    __slots__ = ("bit", "domains", "free_cpu_milli", "free_memory_bytes", "free_milli", "links", "node", "seen")

    def __init__(self, node: Node, bit: int) -> None:
        self.node = node
        self.bit = bit
        self.free_cpu_milli = node.cpu_milli - node.taken.cpu_milli
        self.free_memory_bytes = node.memory_bytes - node.taken.memory_bytes
        #: thousandths left of each GPU, usable or not, in the order of their index
        self.free_milli = {gpu.id: WHOLE for gpu in sorted(node.gpus, key=lambda gpu: gpu.index)}
        #: the usable GPUs of each domain
        self.domains: dict[Domain, tuple[str, ...]] = _usable_domains(node)
        #: by GPU: its link group, if it is known
        self.links: dict[str, str] = _links(node)
        #: by domain: the values under which the node is in the domain's index
        self.seen: dict[Domain, Free] = {}

    def now(self, domain: Domain) -> Free:
        whole = 0
        partial: set[int] = set()
        for gpu in self.domains[domain]:
            left = self.free_milli[gpu]
            if left == WHOLE:
                whole += 1
            elif left > 0:
                partial.add(left)
        if not self.links or domain == EVERYWHERE:
            return whole, tuple(sorted(partial)), ()
        return whole, tuple(sorted(partial)), free_in_groups(self.whole_gpus(domain), self.links)

    def whole_gpus(self, domain: Domain) -> list[str]:
        return [gpu for gpu in self.domains.get(domain, ()) if self.free_milli[gpu] == WHOLE]

    def with_share(self, domain: Domain, milli: int, avoid: tuple[str, ...]) -> list[str]:
        """The GPUs that have room for the share."""
        return [g for g in self.domains.get(domain, ()) if self.free_milli[g] >= milli and g not in avoid]

    def best_share(self, domain: Domain, milli: int, avoid: tuple[str, ...]) -> str | None:
        """The GPU with the least left that still has room for the share; an unused GPU from the group with the fewest
        free."""
        fitting = self.with_share(domain, milli, avoid)
        best = min(fitting, key=lambda gpu: self.free_milli[gpu], default=None)
        if best is None or not self.links or self.free_milli[best] < WHOLE:
            return best
        return linked(fitting, self.links, 1)[0]


class Fleet:
    """All nodes. `take` and `give_back` are exact opposites."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        ordered = sorted(nodes, key=lambda node: node_order(node.id))
        self.slots = [Slot(node, 1 << place) for place, node in enumerate(ordered)]
        self.place_of = {slot.node.id: place for place, slot in enumerate(self.slots)}
        self.domains: dict[Domain, DomainIndex] = {EVERYWHERE: DomainIndex(EVERYWHERE)}
        self.gpu_home: dict[str, str] = {}
        #: the place of the node of the last allocation, for round-robin
        self.last_place = -1
        #: the GPU of the last allocation that has GPUs, as its position on its node
        self.last_position = -1
        #: the mix of requests of each pool that has one
        self.mixes: dict[str, Mix] = {}
        #: by domain and name: caches of placement policies
        self.watchers: dict[Domain, dict[str, Watcher]] = {}
        #: the label that names the rack of a node
        self.rack_label = DEFAULT_RACK_LABEL
        self._labelled: dict[tuple[str, str], int] = {}
        #: how many GPUs of each domain there are, usable or not
        self._present: dict[Domain, int] = {}
        for slot in self.slots:
            self._enter(slot)

    def slot(self, node_id: str) -> Slot:
        return self.slots[self.place_of[node_id]]

    def replace_node(self, node: Node) -> None:
        """The node changed (state, labels, health, load, size); resources held on it stay held."""
        slot = self.slot(node.id)
        old = slot.node
        if _same_capacity(old, node):
            # Only the measured load changed, which no index depends on.
            slot.node = node
            return
        self._leave(slot)
        held_milli = {gpu: WHOLE - left for gpu, left in slot.free_milli.items()}
        slot.node = node
        slot.free_cpu_milli += node.cpu_milli - node.taken.cpu_milli - old.cpu_milli + old.taken.cpu_milli
        slot.free_memory_bytes += (
            node.memory_bytes - node.taken.memory_bytes - old.memory_bytes + old.taken.memory_bytes
        )
        slot.free_milli = {
            gpu.id: WHOLE - held_milli.get(gpu.id, 0) for gpu in sorted(node.gpus, key=lambda gpu: gpu.index)
        }
        slot.domains = _usable_domains(node)
        slot.links = _links(node)
        self._enter(slot)
        for watchers in self.watchers.values():
            for watcher in watchers.values():
                watcher.touched.add(self.place_of[node.id])

    def put_mix(self, pool: str, mix: Mix) -> None:
        """Set the mix of requests of a pool; an empty mix removes it."""
        if mix.portions:
            self.mixes[pool] = mix
        else:
            self.mixes.pop(pool, None)
        for domain in [domain for domain in self.watchers if domain[0] == pool]:
            del self.watchers[domain]

    def take(self, allocation: Allocation) -> None:
        for grant in allocation.grants:
            self._shift(grant, 1)

    def give_back(self, allocation: Allocation) -> None:
        for grant in allocation.grants:
            self._shift(grant, -1)

    def put_last(self, node_id: str, gpu_id: str) -> None:
        """The node and the GPU of the last allocation, or empty texts."""
        self.last_place = self.place_of.get(node_id, -1)
        home = self.gpu_home.get(gpu_id)
        if home is None:
            self.last_position = -1
        else:
            self.last_position = list(self.slot(home).free_milli).index(gpu_id)

    def eligible(self, labels: tuple[tuple[str, str], ...], avoid_nodes: tuple[str, ...]) -> int:
        """The nodes with all these labels, less those to avoid."""
        found = (1 << len(self.slots)) - 1
        for label in labels:
            found &= self._labelled.get(label, 0)
        for node_id in avoid_nodes:
            place = self.place_of.get(node_id)
            if place is not None:
                found &= ~(1 << place)
        return found

    def domains_of(self, pool: str, models: tuple[str, ...]) -> list[DomainIndex]:
        """The domains of a pool with one of these models (any, if none is named), in the order of their names.

        Without a model, whole GPUs are meant; slices only in a pool that has nothing else.
        """
        found = [
            self.domains[domain]
            for domain in sorted(self.domains)
            if domain[0] == pool and domain[1] and (not models or domain[1] in models)
        ]
        if models or not any(is_slice(index.domain[1]) for index in found) or not self._has_whole_gpus(pool):
            return found
        return [index for index in found if not is_slice(index.domain[1])]

    def racks(self) -> list[int]:
        """The nodes of each rack, in the order of the racks' names. Nodes without the label are in no rack."""
        return [bits for (name, _), bits in sorted(self._labelled.items()) if name == self.rack_label and bits]

    def _has_whole_gpus(self, pool: str) -> bool:
        """Whether the pool has whole GPUs, usable or not: a node that is down for a moment must not change the
        meaning."""
        return any(domain[0] == pool and not is_slice(domain[1]) for domain in self._present)

    def _shift(self, grant: Grant, sign: int) -> None:
        place = self.place_of.get(grant.node)
        if place is None:
            return  # the node was removed, and its resources with it
        slot = self.slots[place]
        for gpu in grant.gpus:
            if gpu not in slot.free_milli:
                continue  # the GPU was removed
            left = slot.free_milli[gpu] - sign * grant.gpu_milli
            if not 0 <= left <= WHOLE:
                raise Oversubscribed(f"GPU {gpu} on {grant.node}: {left} thousandths would be left")
            slot.free_milli[gpu] = left
        slot.free_cpu_milli -= sign * grant.cpu_milli
        slot.free_memory_bytes -= sign * grant.memory_bytes
        if grant.gpus:
            self._refresh(slot)
        if self.watchers:
            for domain in slot.domains:
                for watcher in self.watchers.get(domain, {}).values():
                    watcher.touched.add(place)

    def _refresh(self, slot: Slot) -> None:
        for domain, seen in slot.seen.items():
            now = slot.now(domain)
            if now != seen:
                index = self.domains[domain]
                index.leave(slot.bit, *seen)
                index.enter(slot.bit, *now)
                slot.seen[domain] = now

    def _enter(self, slot: Slot) -> None:
        for gpu in slot.node.gpus:
            self.gpu_home[gpu.id] = slot.node.id
            self._present[gpu.pool, gpu.model] = self._present.get((gpu.pool, gpu.model), 0) + 1
        for label in slot.node.all_labels:
            self._labelled[label] = self._labelled.get(label, 0) | slot.bit
        for domain in slot.domains:
            index = self.domains.setdefault(domain, DomainIndex(domain))
            slot.seen[domain] = slot.now(domain)
            index.enter(slot.bit, *slot.seen[domain])

    def _leave(self, slot: Slot) -> None:
        for gpu in slot.node.gpus:
            self.gpu_home.pop(gpu.id, None)
            self._present[gpu.pool, gpu.model] -= 1
            if not self._present[gpu.pool, gpu.model]:
                del self._present[gpu.pool, gpu.model]
        for label in slot.node.all_labels:
            self._labelled[label] &= ~slot.bit
        for domain, seen in slot.seen.items():
            self.domains[domain].leave(slot.bit, *seen)
        slot.seen = {}


def places(bits: int) -> Iterator[int]:
    """The places that a set of nodes holds, first to last."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def union(sets: Iterable[int]) -> int:
    """The nodes that are in one of these sets."""
    found = 0
    for bits in sets:
        found |= bits
    return found


def node_order(node_id: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Nodes are in this order everywhere."""
    return natural_key(node_id), node_id


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """gpu-2 comes before gpu-10."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def _usable_domains(node: Node) -> dict[Domain, tuple[str, ...]]:
    if node.state is not NodeState.READY:
        return {}
    domains: dict[Domain, tuple[str, ...]] = {EVERYWHERE: ()}
    for gpu in sorted(node.gpus, key=lambda gpu: gpu.index):
        if gpu.takes_jobs and gpu.id not in node.taken.gpus:
            for domain in ((gpu.pool, gpu.model), EVERYWHERE):
                domains[domain] = (*domains.get(domain, ()), gpu.id)
    return domains


def _links(node: Node) -> dict[str, str]:
    return {gpu.id: gpu.link_group for gpu in node.gpus if gpu.link_group}


def _take_bit(sets: dict[int, int], key: int, bit: int) -> None:
    rest = sets[key] & ~bit
    if rest:
        sets[key] = rest
    else:
        del sets[key]


def _same_capacity(old: Node, new: Node) -> bool:
    def shape(node: Node) -> tuple[NodeState, int, int, tuple[Gpu, ...], tuple[tuple[str, str], ...], Taken]:
        return node.state, node.cpu_milli, node.memory_bytes, node.gpus, node.all_labels, node.taken

    return shape(old) == shape(new)
