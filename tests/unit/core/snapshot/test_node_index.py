"""The index of free resources: it answers as a look at every node would, and `give_back` undoes `take`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import WHOLE, Allocation, Gpu, GpuHealth, Grant, NodeState, Request, Taken
from corral.core.snapshot.node_index import (
    EVERYWHERE,
    DomainIndex,
    Fleet,
    Oversubscribed,
    natural_key,
    places,
    union,
)
from tests.unit.core.builders import node

A10 = ("default", "A10")


def held(node_id: str, *indexes: int, milli: int = WHOLE, cpu_milli: int = 0) -> Allocation:
    gpus = tuple(f"{node_id}/{index}" for index in indexes)
    return Allocation(grants=(Grant(node=node_id, gpus=gpus, gpu_milli=milli, cpu_milli=cpu_milli),), model="A10")


def names(fleet: Fleet, bits: int) -> list[str]:
    return [fleet.slots[place].node.id for place in places(bits)]


def index_of(fleet: Fleet) -> DomainIndex:
    return fleet.domains[A10]


def test_nodes_are_in_the_natural_order_of_their_names() -> None:
    fleet = Fleet([node(name, 1) for name in ("gpu-10", "gpu-2", "gpu-1")])
    assert [slot.node.id for slot in fleet.slots] == ["gpu-1", "gpu-2", "gpu-10"]
    assert sorted(["n10", "n2", "n"], key=natural_key) == ["n", "n2", "n10"]


def test_a_set_of_nodes_is_read_from_the_first_to_the_last() -> None:
    assert [*places(0b101100)] == [2, 3, 5]
    assert [*places(0)] == []
    assert union([0b001, 0b100, 0b001]) == 0b101
    assert union([]) == 0


def test_nodes_are_found_by_their_free_gpus() -> None:
    fleet = Fleet([node("n1", 4), node("n2", 2), node("n3")])
    index = index_of(fleet)
    assert names(fleet, index.with_whole(1)) == ["n1", "n2"]
    assert names(fleet, index.with_whole(3)) == ["n1"]
    assert index.with_whole(5) == 0
    assert index.free_gpus == 6
    # Jobs without GPUs use every node.
    assert names(fleet, fleet.domains[EVERYWHERE].members) == ["n1", "n2", "n3"]


def test_taken_resources_are_not_free_until_they_are_released() -> None:
    fleet = Fleet([node("n1", 2), node("n2", 2)])
    index = index_of(fleet)
    fleet.take(held("n1", 0, cpu_milli=1000))
    assert names(fleet, index.with_whole(2)) == ["n2"]
    assert names(fleet, index.with_whole(1)) == ["n1", "n2"]
    assert fleet.slot("n1").free_cpu_milli == 63 * WHOLE
    fleet.give_back(held("n1", 0, cpu_milli=1000))
    assert names(fleet, index.with_whole(2)) == ["n1", "n2"]
    assert fleet.slot("n1").free_cpu_milli == 64 * WHOLE


def test_a_gpu_in_part_use_has_room_for_shares_only() -> None:
    fleet = Fleet([node("n1", 1), node("n2", 1)])
    index = index_of(fleet)
    fleet.take(held("n1", 0, milli=700))
    assert names(fleet, index.with_whole(1)) == ["n2"]
    assert names(fleet, index.with_share(300)) == ["n1"]
    assert index.with_share(301) == 0
    assert names(fleet, index.with_room(Request(gpu_milli=300))) == ["n1", "n2"]
    assert names(fleet, index.with_room(Request(gpu_milli=400))) == ["n2"]
    # The fullest GPU that still has room is used first.
    assert fleet.slot("n1").best_share(A10, 300, ()) == "n1/0"
    assert fleet.slot("n1").best_share(A10, 400, ()) is None


def test_more_than_there_is_cannot_be_taken_nor_given_back() -> None:
    fleet = Fleet([node("n1", 1)])
    fleet.take(held("n1", 0, milli=600))
    with pytest.raises(Oversubscribed, match="GPU n1/0 on n1"):
        fleet.take(held("n1", 0, milli=500))
    fleet.give_back(held("n1", 0, milli=600))
    with pytest.raises(Oversubscribed):
        fleet.give_back(held("n1", 0, milli=600))


def test_nodes_and_gpus_that_cannot_be_used_are_in_no_domain() -> None:
    broken = Gpu(id="n1/1", index=1, model="A10", health=GpuHealth.SUSPECT)
    devices = (Gpu(id="n1/0", index=0, model="A10"), broken)
    foreign = node("n3", 2, taken=Taken(gpus=("n3/0",)))
    fleet = Fleet([node("n1", devices), node("n2", 2, state=NodeState.CORDONED), foreign])
    assert names(fleet, index_of(fleet).members) == ["n1", "n3"]
    assert index_of(fleet).free_gpus == 2
    assert fleet.gpu_home["n2/0"] == "n2", "the node of every GPU is known"


def test_labels_and_nodes_to_avoid_narrow_the_search() -> None:
    fleet = Fleet([node("n1", 1, labels=(("rack", "a"),)), node("n2", 1, labels=(("rack", "b"),)), node("n3", 1)])
    assert names(fleet, fleet.eligible((), ())) == ["n1", "n2", "n3"]
    assert names(fleet, fleet.eligible((("rack", "a"),), ())) == ["n1"]
    assert names(fleet, fleet.eligible((), ("n2", "unknown"))) == ["n1", "n3"]
    assert fleet.eligible((("rack", "c"),), ()) == 0
    fleet.rack_label = "rack"
    assert [names(fleet, rack) for rack in fleet.racks()] == [["n1"], ["n2"]]


def test_a_changed_node_keeps_what_is_held_on_it() -> None:
    fleet = Fleet([node("n1", 2), node("n2", 2)])
    fleet.take(held("n1", 0, cpu_milli=4000))
    fleet.replace_node(node("n1", 4, labels=(("zone", "x"),)))
    slot = fleet.slot("n1")
    assert slot.free_milli == {"n1/0": 0, "n1/1": WHOLE, "n1/2": WHOLE, "n1/3": WHOLE}
    assert slot.free_cpu_milli == 60 * WHOLE
    assert names(fleet, fleet.eligible((("zone", "x"),), ())) == ["n1"]
    fleet.replace_node(replace(slot.node, state=NodeState.DOWN))
    assert names(fleet, index_of(fleet).members) == ["n2"]
    fleet.replace_node(replace(slot.node, state=NodeState.READY))
    assert names(fleet, index_of(fleet).with_whole(3)) == ["n1"]


def test_resources_of_a_removed_node_or_gpu_are_not_released_to_another() -> None:
    fleet = Fleet([node("n1", 2)])
    fleet.take(held("n1", 1))
    fleet.replace_node(node("n1", 1))
    fleet.give_back(held("n1", 1))
    fleet.give_back(held("n9", 0))
    assert fleet.slot("n1").free_milli == {"n1/0": WHOLE}


def test_slices_are_used_without_a_model_only_where_there_is_nothing_else() -> None:
    part = Gpu(id="n2/0", index=0, model="A100-MIG-1g.10gb")
    fleet = Fleet([node("n1", 1), node("n2", (part,))])
    assert [index.domain[1] for index in fleet.domains_of("default", ())] == ["A10"]
    assert [index.domain[1] for index in fleet.domains_of("default", ("A100-MIG-1g.10gb",))] == ["A100-MIG-1g.10gb"]
    alone = Fleet([node("n2", (part,))])
    assert [index.domain[1] for index in alone.domains_of("default", ())] == ["A100-MIG-1g.10gb"]


@given(st.data())
def test_the_index_answers_as_a_look_at_every_node_would(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    fleet = Fleet([node(f"n{number}", size) for number, size in enumerate(sizes)])
    free = {gpu: WHOLE for slot in fleet.slots for gpu in slot.free_milli}
    taken: list[Allocation] = []
    for _ in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()) and taken:
            allocation = taken.pop(data.draw(st.integers(0, len(taken) - 1)))
            fleet.give_back(allocation)
            sign = 1
        else:
            milli = data.draw(st.sampled_from([250, 500, WHOLE]))
            fitting = sorted(gpu for gpu, left in free.items() if left >= milli)
            if not fitting:
                continue
            home, _, number = data.draw(st.sampled_from(fitting)).partition("/")
            allocation = held(home, int(number), milli=milli)
            fleet.take(allocation)
            taken.append(allocation)
            sign = -1
        for grant in allocation.grants:
            for gpu in grant.gpus:
                free[gpu] += sign * grant.gpu_milli
    index = fleet.domains.get(A10)
    for count in range(1, 5):
        expected = [slot.node.id for slot in fleet.slots if sum(free[gpu] == WHOLE for gpu in slot.free_milli) >= count]
        assert names(fleet, index.with_whole(count) if index else 0) == expected
    for share in (250, 500, 750):
        expected = [slot.node.id for slot in fleet.slots if any(share <= free[gpu] < WHOLE for gpu in slot.free_milli)]
        assert names(fleet, index.with_share(share) if index else 0) == expected
