"""`pack`: the node that has the least GPU left, of all GPU models, so that whole nodes stay free for large jobs.

A share goes to a GPU in part use before an unused one. Nodes with equally much GPU left are ordered by their links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from corral.core.model import WHOLE, Request
from corral.core.scheduling.placement.node_states import NodeStates, RequestShape, State, by_least_cost, has_host
from corral.core.snapshot.node_index import DomainIndex, Fleet, union

#: More than any node has left: an unused GPU comes after all GPUs in part use.
_UNUSED = 1e9


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    for _, equal in groupby(_node_states(fleet, index).ranked(request, among), key=itemgetter(0)):
        yield from index.places(union([bits for _, bits in equal]), request.gpus)


def domains(fleet: Fleet, indexes: Sequence[DomainIndex], request: Request, among: int) -> list[DomainIndex]:
    """The model whose fullest fitting node has the least left first; models without a fitting node last."""
    return by_least_cost([(index, _node_states(fleet, index)) for index in indexes], request, among)


def _node_states(fleet: Fleet, index: DomainIndex) -> NodeStates:
    watchers = fleet.watchers.setdefault(index.domain, {})
    known = watchers.get("pack")
    if isinstance(known, NodeStates):
        return known
    node_states = watchers["pack"] = NodeStates(index.domain, fleet.slots, _left)
    return node_states


def _left(state: State, shape: RequestShape) -> float | None:
    """The thousandths of GPUs that are free on the node."""
    free, _, _ = state
    gpus, share, _, _ = shape
    if not has_host(state, shape):
        return None
    if not share:
        has_room = not gpus or (len(free) >= gpus and free[-gpus] == WHOLE)
        return float(sum(free)) if has_room else None
    room = next((left for left in free if left >= share), None)
    if room is None:
        return None
    return sum(free) + (_UNUSED if room == WHOLE else 0.0)
