"""The nodes of a domain grouped by their free resources (states), and for each shape of request the states that hold
it, in order of preference.

Updated lazily: the fleet notes which nodes were touched, and the next use updates those that really differ. A state is
ranked once per shape while it exists, so that a placement costs what changed since the last placement of its shape, not
the number of nodes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence

from corral.core.model import Request
from corral.core.snapshot.node_index import Domain, DomainIndex, Slot

#: Free resources of a node: thousandths of GPUs (ascending, none zero), CPUs and memory.
State = tuple[tuple[int, ...], int, int]
#: The part of a request that decides whether and how well it fits a state: GPUs, share, CPUs, memory.
RequestShape = tuple[int, int, int, int]
#: The cost of a placement on a state; None if it does not fit. Smaller is better.
Cost = Callable[[State, RequestShape], float | None]

#: How many new states are kept before all rankings are rebuilt; it bounds the memory.
MOST_NEW_STATES = 100_000
#: How many shapes of requests have a ranking at the same time.
MOST_RANKINGS = 512


class _Ranking:
    __slots__ = ("known", "order", "read")

    def __init__(self) -> None:
        self.order: list[tuple[float, State]] = []
        self.known: set[State] = set()
        #: how many of the new states are in this ranking
        self.read = 0


class NodeStates:
    """Implements `corral.core.snapshot.node_index.Watcher`."""

    def __init__(self, domain: Domain, slots: list[Slot], cost: Cost) -> None:
        self.touched: set[int] = set(range(len(slots)))
        self._domain = domain
        self._slots = slots
        self._cost = cost
        self._nodes: dict[State, int] = {}
        self._state_of: dict[int, State] = {}
        #: new states, in the order in which they appeared
        self._new_states: list[State] = []
        self._rankings: dict[RequestShape, _Ranking] = {}

    def ranked(self, request: Request, among: int) -> Iterator[tuple[float, int]]:
        """Costs and sets of nodes that hold one instance of the request, the least cost first."""
        if self.touched:
            self._update()
        for cost, state in self._ranking(request).order:
            bits = self._nodes.get(state, 0) & among
            if bits:
                yield cost, bits

    def candidates(self, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
        for _, bits in self.ranked(request, among):
            yield from index.places(bits, request.gpus)

    def _update(self) -> None:
        for place in self.touched:
            state = self._now(self._slots[place])
            before = self._state_of.get(place)
            if state == before:
                continue
            bit = self._slots[place].bit
            if before is not None:
                rest = self._nodes[before] & ~bit
                if rest:
                    self._nodes[before] = rest
                else:
                    del self._nodes[before]
                del self._state_of[place]
            if state is not None:
                present = self._nodes.get(state)
                if present is None:
                    self._new_states.append(state)
                self._nodes[state] = (present or 0) | bit
                self._state_of[place] = state
        self.touched.clear()
        if len(self._new_states) > MOST_NEW_STATES:
            self._new_states = list(self._nodes)
            self._rankings.clear()

    def _now(self, slot: Slot) -> State | None:
        gpus = slot.domains.get(self._domain)
        if gpus is None:
            return None
        free = slot.free_milli
        free_parts = sorted([left for gpu in gpus if (left := free[gpu])])
        return (tuple(free_parts), slot.free_cpu_milli, slot.free_memory_bytes)

    def _ranking(self, request: Request) -> _Ranking:
        shape = (request.gpus, request.gpu_milli, request.cpu_milli, request.memory_bytes)
        ranking = self._rankings.get(shape)
        if ranking is None:
            if len(self._rankings) >= MOST_RANKINGS:
                self._rankings.clear()
            ranking = self._rankings[shape] = _Ranking()
        if ranking.read < len(self._new_states):
            self._add_new_states(ranking, shape)
        order = ranking.order
        # States without nodes are removed when they are at the front, or when they are the majority.
        gone = 0
        while gone < len(order) and order[gone][1] not in self._nodes:
            ranking.known.discard(order[gone][1])
            gone += 1
        if gone:
            del order[:gone]
        if len(order) > 2 * len(self._nodes) + 16:
            ranking.order = [item for item in order if item[1] in self._nodes]
            ranking.known = {state for _, state in ranking.order}
        return ranking

    def _add_new_states(self, ranking: _Ranking, shape: RequestShape) -> None:
        new_states = self._new_states
        for number in range(ranking.read, len(new_states)):
            state = new_states[number]
            if state in ranking.known or state not in self._nodes:
                continue
            cost = self._cost(state, shape)
            if cost is not None:
                insort(ranking.order, (cost, state))
                ranking.known.add(state)
        ranking.read = len(new_states)


def has_host(state: State, shape: RequestShape) -> bool:
    """Whether the CPUs and the memory of the node hold the request."""
    _, cpu_milli, memory_bytes = state
    _, _, cpu, memory = shape
    return (not cpu or cpu <= cpu_milli) and (not memory or memory <= memory_bytes)


def by_least_cost(ranked: Sequence[tuple[DomainIndex, NodeStates]], request: Request, among: int) -> list[DomainIndex]:
    """The domains, the one with the node of the least cost first; those without a fitting node last."""
    if len(ranked) < 2:
        return [index for index, _ in ranked]
    costs = []
    for number, (_, node_states) in enumerate(ranked):
        best = next(node_states.ranked(request, among), None)
        costs.append((float("inf") if best is None else best[0], number))
    return [ranked[number][0] for _, number in sorted(costs)]
