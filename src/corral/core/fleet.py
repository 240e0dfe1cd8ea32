"""The free resources of all nodes, indexed so that finding a place does not look at every node.

Nodes stand in one fixed order (by their names, numbers counted as numbers), and a set of nodes is an integer whose
bits are places in that order. For each domain - a pool and a GPU model - nodes are kept in buckets by how many whole
GPUs are free. Taking and giving back touch one node's bits only. Equal content gives equal answers, whatever the
order in which it came to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from corral.core.mix import Mix
from corral.core.model import WHOLE, Allocation, Gpu, GpuHealth, Grant, Node, NodeState

#: A pool and a GPU model.
Domain = tuple[str, str]
#: The domain of work without GPUs: every ready node, by the free GPUs that it would sit beside.
EVERYWHERE: Domain = ("", "")


class Oversubscribed(Exception):
    """More was taken than is there: a bug, or a node that lost resources while they were held."""


class Watcher(Protocol):
    """Something worked out from what is free in a domain, kept by a policy between two looks."""

    #: the places of nodes that may have changed since it last looked
    touched: set[int]


class DomainIndex:
    """The nodes of one domain by what is free on them."""

    __slots__ = ("domain", "free_gpus", "members", "partial", "whole")

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        #: whole[k]: the nodes with exactly k whole GPUs free
        self.whole: list[int] = [0]
        #: partial[m]: the nodes that have a GPU in part use with m thousandths left
        self.partial: dict[int, int] = {}
        self.members = 0
        #: whole GPUs free in the domain
        self.free_gpus = 0

    def with_whole(self, count: int) -> int:
        """The nodes that have at least `count` whole GPUs free."""
        found = 0
        for bits in self.whole[count:]:
            found |= bits
        return found

    def with_share(self, milli: int) -> int:
        """The nodes that have a GPU in part use with at least that much left."""
        found = 0
        for left, bits in self.partial.items():
            if left >= milli:
                found |= bits
        return found

    def enter(self, bit: int, free_whole: int, partial: Iterable[int]) -> None:
        while len(self.whole) <= free_whole:
            self.whole.append(0)
        self.members |= bit
        self.whole[free_whole] |= bit
        self.free_gpus += free_whole
        for left in partial:
            self.partial[left] = self.partial.get(left, 0) | bit

    def leave(self, bit: int, free_whole: int, partial: Iterable[int]) -> None:
        self.members &= ~bit
        self.whole[free_whole] &= ~bit
        self.free_gpus -= free_whole
        for left in partial:
            rest = self.partial[left] & ~bit
            if rest:
                self.partial[left] = rest
            else:
                del self.partial[left]


class Slot:
    """One node and what is free on it."""

    __slots__ = ("bit", "domains", "free_cpu_milli", "free_memory_bytes", "free_milli", "node", "seen")

    def __init__(self, node: Node, bit: int) -> None:
        self.node = node
        self.bit = bit
        self.free_cpu_milli = node.cpu_milli
        self.free_memory_bytes = node.memory_bytes
        #: thousandths left of each GPU, usable or not, in the order of their index
        self.free_milli = {gpu.id: WHOLE for gpu in sorted(node.gpus, key=lambda gpu: gpu.index)}
        #: the usable GPUs of each domain
        self.domains: dict[Domain, tuple[str, ...]] = _usable_domains(node)
        #: what each domain's index was last told: free whole GPUs, and what is left of those in part use
        self.seen: dict[Domain, tuple[int, tuple[int, ...]]] = {}

    def now(self, domain: Domain) -> tuple[int, tuple[int, ...]]:
        whole = 0
        partial: set[int] = set()
        for gpu in self.domains[domain]:
            left = self.free_milli[gpu]
            if left == WHOLE:
                whole += 1
            elif left > 0:
                partial.add(left)
        return whole, tuple(sorted(partial))

    def whole_gpus(self, domain: Domain) -> list[str]:
        return [gpu for gpu in self.domains.get(domain, ()) if self.free_milli[gpu] == WHOLE]

    def best_share(self, domain: Domain, milli: int, avoid: tuple[str, ...]) -> str | None:
        """The GPU with the least left that still has room for the share."""
        fitting = [g for g in self.domains.get(domain, ()) if self.free_milli[g] >= milli and g not in avoid]
        return min(fitting, key=lambda gpu: self.free_milli[gpu], default=None)


class Fleet:
    """All nodes. `take` and `give_back` are exact opposites."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        ordered = sorted(nodes, key=lambda node: (natural_key(node.id), node.id))
        self.slots = [Slot(node, 1 << place) for place, node in enumerate(ordered)]
        self.place_of = {slot.node.id: place for place, slot in enumerate(self.slots)}
        self.domains: dict[Domain, DomainIndex] = {EVERYWHERE: DomainIndex(EVERYWHERE)}
        self.gpu_home: dict[str, str] = {}
        #: the place of the node that was given out last, for policies that go round
        self.last_place = -1
        #: the mix of requests of each pool that has one
        self.mixes: dict[str, Mix] = {}
        #: what policies keep of a domain; all of it can be worked out anew
        self.watchers: dict[Domain, Watcher] = {}
        self._labelled: dict[tuple[str, str], int] = {}
        for slot in self.slots:
            self._enter(slot)

    def slot(self, node_id: str) -> Slot:
        return self.slots[self.place_of[node_id]]

    def replace_node(self, node: Node) -> None:
        """The node changed (state, labels, health, load, size); what is held on it stays held."""
        slot = self.slot(node.id)
        old = slot.node
        if _same_capacity(old, node):
            # Only the measured load moved, which no index depends on.
            slot.node = node
            return
        self._leave(slot)
        held_milli = {gpu: WHOLE - left for gpu, left in slot.free_milli.items()}
        slot.node = node
        slot.free_cpu_milli += node.cpu_milli - old.cpu_milli
        slot.free_memory_bytes += node.memory_bytes - old.memory_bytes
        slot.free_milli = {
            gpu.id: WHOLE - held_milli.get(gpu.id, 0) for gpu in sorted(node.gpus, key=lambda gpu: gpu.index)
        }
        slot.domains = _usable_domains(node)
        self._enter(slot)
        for watcher in self.watchers.values():
            watcher.touched.add(self.place_of[node.id])

    def put_mix(self, pool: str, mix: Mix) -> None:
        """What a pool is asked for from now on; a mix of nothing is the same as none."""
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
        """The domains of a pool with one of these models (any, if none is named), in the order of their names."""
        return [
            self.domains[domain]
            for domain in sorted(self.domains)
            if domain[0] == pool and domain[1] and (not models or domain[1] in models)
        ]

    def _shift(self, grant: Grant, sign: int) -> None:
        place = self.place_of.get(grant.node)
        if place is None:
            return  # the node is gone, and what was held on it with it
        slot = self.slots[place]
        for gpu in grant.gpus:
            if gpu not in slot.free_milli:
                continue  # the device is gone
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
                if domain in self.watchers:
                    self.watchers[domain].touched.add(place)

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
        for label in slot.node.labels:
            self._labelled[label] = self._labelled.get(label, 0) | slot.bit
        for domain in slot.domains:
            index = self.domains.setdefault(domain, DomainIndex(domain))
            slot.seen[domain] = slot.now(domain)
            index.enter(slot.bit, *slot.seen[domain])

    def _leave(self, slot: Slot) -> None:
        for gpu in slot.node.gpus:
            self.gpu_home.pop(gpu.id, None)
        for label in slot.node.labels:
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


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """gpu-2 comes before gpu-10."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def _usable_domains(node: Node) -> dict[Domain, tuple[str, ...]]:
    if node.state is not NodeState.READY:
        return {}
    domains: dict[Domain, tuple[str, ...]] = {EVERYWHERE: ()}
    for gpu in sorted(node.gpus, key=lambda gpu: gpu.index):
        if gpu.health is GpuHealth.HEALTHY:
            for domain in ((gpu.pool, gpu.model), EVERYWHERE):
                domains[domain] = (*domains.get(domain, ()), gpu.id)
    return domains


def _same_capacity(old: Node, new: Node) -> bool:
    def shape(node: Node) -> tuple[NodeState, int, int, tuple[Gpu, ...], tuple[tuple[str, str], ...]]:
        return node.state, node.cpu_milli, node.memory_bytes, node.gpus, node.labels

    return shape(old) == shape(new)
