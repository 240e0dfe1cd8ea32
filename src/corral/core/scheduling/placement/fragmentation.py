"""`fragmentation`: the node on which the expected leftover (stranded idle GPU) grows least, for the mix of requests
that the pool has seen lately (`expected_leftover`).

Where jobs end, a hole that one of them leaves is filled again, and what is scarce are nodes with many free GPUs: each
free GPU of the node counts as `WORTH` thousandths of growth, times the part of jobs that end, so that full nodes come
first.

Jobs without GPUs go to the nodes where the fewest idle GPUs depend on the free CPUs. While a pool has no mix, the
fullest node is the best one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from corral.core.model import WHOLE, Request
from corral.core.scheduling.placement import pack
from corral.core.scheduling.placement.expected_leftover import Leftover, leftover_of
from corral.core.scheduling.placement.node_states import NodeStates, RequestShape, State, by_least_cost, has_host
from corral.core.snapshot.node_index import EVERYWHERE, DomainIndex, Fleet

#: Thousandths of leftover that are accepted for one free GPU less on the node, where as many jobs end as come;
#: measured: flat between 50 and 500.
WORTH = 150.0


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    node_states = _node_states(fleet, index)
    if node_states is None:
        return pack.candidates(fleet, index, request, among)
    return node_states.candidates(index, request, among)


def domains(fleet: Fleet, indexes: Sequence[DomainIndex], request: Request, among: int) -> list[DomainIndex]:
    """The model with the least growth first; models without a fitting node last."""
    ranked = [(index, node_states) for index in indexes if (node_states := _node_states(fleet, index)) is not None]
    if len(ranked) < len(indexes):
        return pack.domains(fleet, indexes, request, among)
    return by_least_cost(ranked, request, among)


def _node_states(fleet: Fleet, index: DomainIndex) -> NodeStates | None:
    watchers = fleet.watchers.setdefault(index.domain, {})
    known = watchers.get("fragmentation")
    if isinstance(known, NodeStates):
        return known
    if index.domain == EVERYWHERE:
        node_states = NodeStates(index.domain, fleet.slots, _idle_gpus_at_stake)
    else:
        pool, model = index.domain
        mix = fleet.mixes.get(pool)
        if mix is None:
            return None
        node_states = NodeStates(index.domain, fleet.slots, _Growth(leftover_of(mix, model), WORTH * mix.ended_part))
    watchers["fragmentation"] = node_states
    return node_states


def _idle_gpus_at_stake(state: State, shape: RequestShape) -> float | None:
    """Idle GPU per free CPU: zero on nodes without idle GPUs, small on nodes with many free CPUs."""
    free, cpu_milli, _ = state
    if not has_host(state, shape):
        return None
    return sum(free) / max(1, cpu_milli)


class _Growth:
    """The growth of a node's expected leftover if a request is placed on it, and what the node's free GPUs are worth
    as a whole."""

    def __init__(self, leftover: Leftover, worth: float) -> None:
        self._leftover = leftover
        self._worth = worth

    def __call__(self, state: State, shape: RequestShape) -> float | None:
        free, cpu_milli, memory_bytes = state
        gpus, share, cpu, memory = shape
        if not has_host(state, shape):
            return None
        after = _less_share(free, share) if share else _less_whole(free, gpus)
        if after is None:
            return None
        leftover = self._leftover
        growth = leftover(after, cpu_milli - cpu, memory_bytes - memory) - leftover(free, cpu_milli, memory_bytes)
        # Rounding errors must not decide.
        return round(growth + self._worth * sum(free) / WHOLE, 6)


def _less_whole(free: tuple[int, ...], gpus: int) -> tuple[int, ...] | None:
    return free[:-gpus] if len(free) >= gpus and free[-gpus] == WHOLE else None


def _less_share(free: tuple[int, ...], share: int) -> tuple[int, ...] | None:
    """Takes the GPU with the least left that has room, as the placement does."""
    place = bisect_left(free, share)
    if place == len(free):
        return None
    rest = [*free[:place], *free[place + 1 :]]
    if free[place] > share:
        insort(rest, free[place] - share)
    return tuple(rest)
