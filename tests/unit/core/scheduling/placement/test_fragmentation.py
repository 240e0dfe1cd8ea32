"""Placement by the leftover: what it prefers, and that it never refuses what fits nor forgets what changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import DEFAULT_POOL, Allocation, GpuHealth, Job, Node, NodeState, Request
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.placement import POLICIES
from corral.core.scheduling.placement.search import choose_gpus, domains_for, find_place, has_cpu_and_memory
from corral.core.snapshot.changes import PutMix
from corral.core.snapshot.node_index import Fleet
from corral.core.snapshot.request_mix import mix_of
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.strategies import nodes, requests
from tests.unit.searching import DEAR, between

GIB = 1 << 30


def fleet(*nodes: Node, asked: list[tuple[Request, int]]) -> Fleet:
    made = Fleet(nodes)
    made.put_mix(DEFAULT_POOL, mix_of(asked))
    return made


def job(**asked: object) -> Job:
    return Job(id="j-1", name="job", user="ann", request=Request(**asked))  # type: ignore[arg-type]


def chosen(place: Allocation | None) -> list[str]:
    assert place is not None
    return [grant.node for grant in place.grants]


def put(made: Fleet, wanted: Job, placement: str = "fragmentation") -> list[str]:
    place = find_place(made, wanted, DEFAULT_POOL, placement)
    nodes_taken = chosen(place)
    assert place is not None
    made.take(place)
    return nodes_taken


# ------------------------------------------------------------------------------------------------ stories


def test_cpu_hungry_work_goes_where_cpus_abound() -> None:
    """On the lean node it would leave a GPU without CPUs. The fullest node would be the wrong one."""
    lean = node("lean", 2, cpu_milli=8000)
    rich = node("rich", 2, cpu_milli=64_000)
    asked = [(Request(gpus=1, cpu_milli=4000), 50), (Request(gpus=1, cpu_milli=8000), 50)]
    made = fleet(lean, rich, asked=asked)
    assert put(made, job(gpus=1, cpu_milli=8000)) == ["rich"]
    assert put(made, job(gpus=1, cpu_milli=4000)) == ["lean"]


def test_a_scarce_model_is_kept_for_those_who_need_it() -> None:
    asked = [(Request(gpus=1), 50), (Request(gpus=2, models=("H100",)), 50)]
    made = fleet(node("a", 2, model="A10"), node("h", 2, model="H100"), asked=asked)
    assert put(made, job(gpus=1)) == ["a"]
    assert put(made, job(gpus=2, models=("A10", "H100"))) == ["h"]


def test_the_models_are_compared_and_not_taken_by_name() -> None:
    asked = [(Request(gpus=1), 50), (Request(gpus=2, models=("A10",)), 50)]
    made = fleet(node("a", 2, model="A10"), node("h", 2, model="H100"), asked=asked)
    assert put(made, job(gpus=1)) == ["h"]


def test_a_share_fills_the_hole_that_it_fits() -> None:
    asked = [(Request(gpu_milli=650), 30), (Request(gpu_milli=350), 30), (Request(gpu_milli=500), 40)]
    made = fleet(node("n1", 1), node("n2", 1), asked=asked)
    assert put(made, job(gpu_milli=500)) == ["n1"]
    assert put(made, job(gpu_milli=650)) == ["n2"]
    assert put(made, job(gpu_milli=350)) == ["n2"]
    assert put(made, job(gpu_milli=500)) == ["n1"]


def test_work_without_gpus_stays_away_from_idle_ones() -> None:
    made = fleet(node("busy", 1), node("idle", 4), node("none"), asked=[(Request(gpus=1), 1)])
    made.take(running(9, on={"busy": (0,)}).allocation or Allocation(grants=()))
    assert put(made, job(cpu_milli=60_000)) in (["busy"], ["none"])
    assert put(made, job(cpu_milli=60_000)) in (["busy"], ["none"])
    assert put(made, job(cpu_milli=60_000)) == ["idle"]


@pytest.mark.parametrize(("ended", "expected"), [(0, ["large"]), (100, ["small"])])
def test_where_jobs_end_large_nodes_are_kept_whole(ended: int, expected: list[str]) -> None:
    """The small node has CPUs for the hungry half of the mix, which counts most while nothing ends."""
    made = Fleet([node("large", 8, cpu_milli=96_000, model="A10"), node("small", 2, cpu_milli=16_000, model="T4")])
    asked = [(Request(gpus=1, cpu_milli=4000), 50), (Request(gpus=1, cpu_milli=8000), 50)]
    made.put_mix(DEFAULT_POOL, mix_of(asked, ended))
    assert put(made, job(gpus=1, cpu_milli=4000)) == expected


def test_without_a_mix_it_packs() -> None:
    made = Fleet([node("n1", 4), node("n2", 4)])
    made.take(running(9, on={"n2": (0,)}).allocation or Allocation(grants=()))
    assert put(made, job(gpus=1)) == ["n2"]


def test_a_gang_gets_a_node_for_each_instance() -> None:
    made = fleet(node("n1", 2), node("n2", 2), node("n3", 1), asked=[(Request(gpus=2), 5)])
    assert sorted(put(made, job(nodes=2, gpus=2))) == ["n1", "n2"]


@pytest.mark.parametrize("placement", ["fragmentation", "pack", "spread"])
def test_a_gang_stays_within_a_rack_if_one_has_room(placement: str) -> None:
    def standing_in(rack: str, name: str) -> Node:
        return node(name, 2, labels=(("rack", rack),))

    made = fleet(standing_in("a", "n1"), standing_in("b", "n2"), standing_in("b", "n3"), asked=[(Request(gpus=2), 5)])
    assert put(made, job(nodes=2, gpus=2), placement) == ["n2", "n3"]
    made = fleet(standing_in("a", "n1"), standing_in("b", "n2"), asked=[(Request(gpus=2), 5)])
    assert sorted(put(made, job(nodes=2, gpus=2), placement)) == ["n1", "n2"]


def test_a_new_mix_decides_from_now_on() -> None:
    """Four who shape one GPU each may break the empty node; one who wants all of it may not."""
    snapshot = snapshot_of(node("n1", 4), node("n2", 2))
    made = snapshot.fleet
    snapshot.apply([PutMix(pool=DEFAULT_POOL, mix=mix_of([(Request(gpus=4), 9), (Request(gpus=1), 1)]))])
    assert chosen(find_place(made, job(gpus=1), DEFAULT_POOL, "fragmentation")) == ["n2"]
    snapshot.apply([PutMix(pool=DEFAULT_POOL, mix=mix_of([(Request(gpus=2), 9), (Request(gpus=1), 1)]))])
    assert chosen(find_place(made, job(gpus=2), DEFAULT_POOL, "fragmentation")) == ["n2"]


def test_the_scheduler_is_none_the_wiser_after_a_cycle() -> None:
    """A cycle supposes and undoes: the next one decides the same."""
    mix = PutMix(pool=DEFAULT_POOL, mix=mix_of([(Request(gpus=1), 5), (Request(gpu_milli=300), 5)]))
    jobs = [waiting(serial, gpu_milli=300) for serial in range(1, 6)] + [waiting(7, gpus=1)]
    snapshot = snapshot_of(node("n1", 2), node("n2", 1), mix, *jobs)
    assert schedule(snapshot, 10.0) == schedule(snapshot, 10.0)


# ------------------------------------------------------------------------------------------------ properties

MIXES = st.lists(
    st.tuples(requests().filter(lambda request: request.wants_gpu), st.integers(1, 20)), min_size=1, max_size=6
)


@st.composite
def cramped(draw: st.DrawFn) -> tuple[Fleet, list[Request], list[tuple[Request, int]]]:
    made = Fleet([draw(nodes(number)) for number in range(draw(between(1, 5)))])
    # Each shape once: the mix must be the same in whatever order it is counted.
    asked = [*{replace(request, nodes=1, labels=()): count for request, count in draw(MIXES)}.items()]
    made.put_mix(DEFAULT_POOL, mix_of(asked))
    return made, draw(st.lists(requests(), min_size=1, max_size=14)), asked


def room_for(made: Fleet, wanted: Job) -> bool:
    """Found the slow way: every node looked at."""
    among = made.eligible(wanted.request.labels, wanted.avoid_nodes)
    return any(
        sum(
            bool(among & slot.bit and index.members & slot.bit)
            and choose_gpus(slot, index, wanted) is not None
            and has_cpu_and_memory(slot, wanted.request)
            for slot in made.slots
        )
        >= wanted.request.nodes
        for index in domains_for(made, wanted.request, DEFAULT_POOL)
    )


@DEAR
@given(cramped(), st.data())
def test_placed_jobs_are_exactly_those_that_fit(
    case: tuple[Fleet, list[Request], list[tuple[Request, int]]], data: st.DataObject
) -> None:
    made, sequence, asked = case
    held: list[Allocation] = []
    for request in sequence:
        wanted = Job(id="j-1", name="job", user="ann", request=request)
        place = find_place(made, wanted, DEFAULT_POOL, "fragmentation")
        assert (place is not None) == room_for(made, wanted)
        # The same content, made anew and never looked at before, gives the same answer.
        fresh = Fleet([slot.node for slot in made.slots])
        fresh.put_mix(DEFAULT_POOL, mix_of(reversed(asked)))
        for allocation in reversed(held):
            fresh.take(allocation)
        assert find_place(fresh, wanted, DEFAULT_POOL, "fragmentation") == place
        if place is not None:
            made.take(place)  # raises if a GPU is given out twice
            held.append(place)
            assert all(made.slot(grant.node).free_cpu_milli >= 0 or not grant.cpu_milli for grant in place.grants)
        if held and data.draw(between(0, 2)) == 0:
            made.give_back(held.pop(data.draw(between(0, len(held) - 1))))


@DEAR
@given(cramped())
def test_a_node_that_changes_is_seen(case: tuple[Fleet, list[Request], list[tuple[Request, int]]]) -> None:
    made, sequence, _ = case
    for number, request in enumerate(sequence):
        wanted = Job(id="j-1", name="job", user="ann", request=request)
        assert (find_place(made, wanted, DEFAULT_POOL, "fragmentation") is not None) == room_for(made, wanted)
        changed = made.slots[number % len(made.slots)].node
        gpus = tuple(replace(gpu, health=GpuHealth.SUSPECT) for gpu in changed.gpus[:1]) + changed.gpus[1:]
        state = NodeState.CORDONED if changed.state is NodeState.READY and number % 2 else NodeState.READY
        made.replace_node(replace(changed, gpus=gpus, state=state))
        assert (find_place(made, wanted, DEFAULT_POOL, "fragmentation") is not None) == room_for(made, wanted)


def test_fragmentation_policy_is_registered() -> None:
    assert "fragmentation" in POLICIES
