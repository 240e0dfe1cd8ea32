"""Nodes grouped by their free resources: the ranking follows every change, and each state is ranked once per shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import WHOLE, Allocation, Grant, NodeState, Request
from corral.core.scheduling.placement import node_states
from corral.core.scheduling.placement.node_states import NodeStates, RequestShape, State
from corral.core.snapshot.node_index import Fleet, places
from tests.unit.core.builders import node

A10 = ("default", "A10")
ALL = (1 << 8) - 1


class Costs:
    """The cost of a state is its number of free GPUs; counts how often it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[State, RequestShape]] = []

    def __call__(self, state: State, shape: RequestShape) -> float | None:
        self.asked.append((state, shape))
        whole = sum(left == WHOLE for left in state[0])
        return float(whole) if whole >= shape[0] else None


def held(node_id: str, *indexes: int) -> Allocation:
    gpus = tuple(f"{node_id}/{index}" for index in indexes)
    return Allocation(grants=(Grant(node=node_id, gpus=gpus, gpu_milli=WHOLE),), model="A10")


def watched(*sizes: int) -> tuple[Fleet, NodeStates, Costs]:
    fleet = Fleet([node(f"n{number}", size) for number, size in enumerate(sizes, start=1)])
    costs = Costs()
    watcher = NodeStates(A10, fleet.slots, costs)
    fleet.watchers[A10] = {"costs": watcher}
    return fleet, watcher, costs


def ranking(fleet: Fleet, watcher: NodeStates, gpus: int, among: int = ALL) -> list[tuple[float, list[str]]]:
    found = watcher.ranked(Request(gpus=gpus), among)
    return [(cost, [fleet.slots[place].node.id for place in places(bits)]) for cost, bits in found]


def test_nodes_of_the_same_state_stand_together_the_cheapest_first() -> None:
    fleet, watcher, _ = watched(4, 2, 4, 1)
    assert ranking(fleet, watcher, 2) == [(2.0, ["n2"]), (4.0, ["n1", "n3"])]
    assert ranking(fleet, watcher, 1, among=0b1001) == [(1.0, ["n4"]), (4.0, ["n1"])]
    assert ranking(fleet, watcher, 5) == []


def test_a_node_moves_when_its_free_gpus_change_and_back() -> None:
    fleet, watcher, _ = watched(4, 4)
    assert ranking(fleet, watcher, 1) == [(4.0, ["n1", "n2"])]
    fleet.take(held("n1", 0, 1))
    assert ranking(fleet, watcher, 1) == [(2.0, ["n1"]), (4.0, ["n2"])]
    fleet.give_back(held("n1", 0, 1))
    assert ranking(fleet, watcher, 1) == [(4.0, ["n1", "n2"])]


def test_a_node_that_is_down_leaves_the_ranking() -> None:
    fleet, watcher, _ = watched(2, 2)
    fleet.replace_node(node("n1", 2, state=NodeState.DOWN))
    assert ranking(fleet, watcher, 1) == [(2.0, ["n2"])]
    fleet.replace_node(node("n1", 2))
    assert ranking(fleet, watcher, 1) == [(2.0, ["n1", "n2"])]


def test_a_state_is_ranked_once_per_shape_while_it_exists() -> None:
    fleet, watcher, costs = watched(4, 4, 4)
    for _ in range(3):
        ranking(fleet, watcher, 1)
    assert len(costs.asked) == 1, "three nodes, one state"
    ranking(fleet, watcher, 2)
    assert len(costs.asked) == 2
    fleet.take(held("n1", 0))
    ranking(fleet, watcher, 1)
    fleet.take(held("n2", 0))
    ranking(fleet, watcher, 1)
    assert len(costs.asked) == 3, "the second node has a state that is known"


def test_candidates_are_the_places_in_the_order_of_the_ranking() -> None:
    fleet, watcher, _ = watched(4, 1, 2)
    assert [*watcher.candidates(fleet.domains[A10], Request(gpus=1), ALL)] == [1, 2, 0]


def test_memory_is_bounded_by_rebuilding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_states, "MOST_NEW_STATES", 2)
    monkeypatch.setattr(node_states, "MOST_RANKINGS", 2)
    fleet, watcher, _ = watched(4, 4)
    for count in (1, 2, 3, 4):
        fleet.take(held("n1", count - 1))
        assert ranking(fleet, watcher, 1) == [
            *([(float(4 - count), ["n1"])] if count < 4 else []),
            (4.0, ["n2"]),
        ]
        ranking(fleet, watcher, count)
    assert len(watcher._rankings) <= 2
    assert len(watcher._new_states) <= 3


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=20), st.integers(1, 4))
def test_the_ranking_is_the_one_of_a_new_start(touched: list[tuple[int, int]], gpus: int) -> None:
    fleet, watcher, _ = watched(4, 4, 4, 4)
    taken: set[tuple[int, int]] = set()
    for place, index in touched:
        allocation = held(f"n{place}", index)
        if (place, index) in taken:
            fleet.give_back(allocation)
        else:
            fleet.take(allocation)
        taken ^= {(place, index)}
        ranking(fleet, watcher, gpus)
    fresh = NodeStates(A10, fleet.slots, Costs())
    assert ranking(fleet, watcher, gpus) == ranking(fleet, fresh, gpus)
