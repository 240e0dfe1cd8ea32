"""The search of a place: one node, gangs in few racks, shares and slices, and whether a job could ever fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.core.model import WHOLE, Allocation, Gpu, Job
from corral.core.scheduling.placement.search import could_ever_fit, domains_for, find_place
from corral.core.snapshot.node_index import EVERYWHERE, Fleet
from tests.unit.core.builders import node, running, waiting


def placed(fleet: Fleet, job: Job, placement: str = "pack") -> dict[str, tuple[str, ...]] | None:
    found = find_place(fleet, job, "default", placement)
    return None if found is None else {grant.node: grant.gpus for grant in found.grants}


def used(*jobs: Job, nodes: int = 2) -> Fleet:
    fleet = Fleet([node(f"n{number}", gpus=4) for number in range(1, nodes + 1)])
    for job in jobs:
        assert job.allocation is not None
        fleet.take(job.allocation)
    return fleet


@pytest.mark.parametrize(
    ("placement", "expected"),
    [("pack", {"n1": ("n1/2",)}), ("spread", {"n2": ("n2/0",)}), ("least-loaded", {"n2": ("n2/0",)})],
)
def test_policies_choose_the_node(placement: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert placed(used(running(1, {"n1": (0, 1)})), waiting(2, gpus=1), placement) == expected


def test_pack_leaves_large_nodes_whole_whatever_their_model() -> None:
    fleet = Fleet([node("n1", gpus=4, model="A10"), node("n2", gpus=2, model="T4")])
    for gpu in range(2):
        place = find_place(fleet, waiting(1, gpus=1), "default", "pack")
        assert place is not None
        assert place.grants[0].gpus == (f"n2/{gpu}",)
        fleet.take(place)
    assert placed(fleet, waiting(1, gpus=1), "pack") == {"n1": ("n1/0",)}


def test_pack_fills_a_gpu_in_part_use_before_it_opens_another_one() -> None:
    share = waiting(1, gpu_milli=300)
    fleet = Fleet([node("n1", gpus=4, model="A10"), node("n2", gpus=1, model="T4")])
    fleet.take(running(9, {"n1": (0,)}, gpu_milli=500).allocation or Allocation(grants=()))
    assert placed(fleet, share, "pack") == {"n1": ("n1/0",)}, "though n2 has less left"
    assert placed(fleet, waiting(2, gpu_milli=600), "pack") == {"n2": ("n2/0",)}


def test_round_robin_starts_behind_the_last_node() -> None:
    fleet = used(nodes=3)
    fleet.last_place = fleet.place_of["n2"]
    assert placed(fleet, waiting(1, gpus=1), "round-robin") == {"n3": ("n3/0",)}
    fleet.last_place = fleet.place_of["n3"]
    assert placed(fleet, waiting(1, gpus=1), "round-robin") == {"n1": ("n1/0",)}


def test_round_robin_uses_every_gpu_of_every_node_in_turn() -> None:
    fleet = used(nodes=3)
    seen: list[str] = []
    for _ in range(12):
        found = find_place(fleet, waiting(1, gpus=1), "default", "round-robin")
        assert found is not None
        fleet.put_last(found.grants[0].node, found.gpus[0])
        seen += found.gpus
    assert seen == [f"n{node}/{gpu}" for gpu in range(4) for node in (1, 2, 3)]
    fleet.put_last("n3", "n3/3")
    assert placed(fleet, waiting(1, gpus=1), "round-robin") == {"n1": ("n1/0",)}, "and from the beginning again"
    fleet.put_last("n3", "n3/1")
    assert placed(fleet, waiting(1, gpu_milli=500), "round-robin") == {"n1": ("n1/2",)}, "shares, too"


def test_round_robin_gives_linked_gpus_in_turn() -> None:
    plain = node("n1", gpus=4)
    gpus = tuple(replace(gpu, link_group="a" if gpu.index < 2 else "b") for gpu in plain.gpus)
    fleet = Fleet([replace(plain, gpus=gpus)])
    fleet.put_last("n1", "n1/1")
    assert placed(fleet, waiting(1, gpus=2), "round-robin") == {"n1": ("n1/2", "n1/3")}
    fleet.put_last("n1", "n1/3")
    assert placed(fleet, waiting(1, gpus=2), "round-robin") == {"n1": ("n1/0", "n1/1")}


def test_least_loaded_chooses_the_gpu_with_the_lowest_measured_load() -> None:
    loads = (("n1/0", 0.6), ("n1/1", 0.1), ("n1/3", 0.4))
    fleet = Fleet([replace(node("n1", gpus=4), gpu_loads=loads)])
    assert placed(fleet, waiting(1, gpus=1), "least-loaded") == {"n1": ("n1/2",)}
    assert placed(fleet, waiting(1, gpus=2), "least-loaded") == {"n1": ("n1/1", "n1/2")}
    assert placed(fleet, waiting(1, gpus=1), "pack") == {"n1": ("n1/0",)}, "other policies go by the index"
    shared = running(1, {"n1": (2,)}, gpu_milli=500)
    assert shared.allocation is not None
    fleet.take(shared.allocation)
    assert placed(fleet, waiting(2, gpu_milli=500), "least-loaded") == {"n1": ("n1/1",)}, "not the one in part use"


def test_avoided_nodes_and_gpus_and_missing_labels_are_not_used() -> None:
    fleet = used()
    assert placed(fleet, waiting(1, gpus=4, avoid_nodes=("n1",))) == {"n2": ("n2/0", "n2/1", "n2/2", "n2/3")}
    assert placed(fleet, waiting(1, gpus=1, avoid_gpus=("n1/0",))) == {"n1": ("n1/1",)}
    assert placed(fleet, waiting(1, gpus=1, labels=(("rack", "a"),))) is None


def test_cpus_and_memory_must_fit_too() -> None:
    fleet = Fleet([node("n1", gpus=4, cpu_milli=2 * WHOLE), node("n2", gpus=4)])
    assert placed(fleet, waiting(1, gpus=1, cpu_milli=4 * WHOLE)) == {"n2": ("n2/0",)}
    assert placed(fleet, waiting(1, cpu_milli=128 * WHOLE)) is None


def test_a_gang_gets_one_node_for_each_instance_or_nothing() -> None:
    fleet = used(running(1, {"n1": (0,)}))
    assert placed(fleet, waiting(2, gpus=3, nodes=2)) == {
        "n1": ("n1/1", "n1/2", "n1/3"),
        "n2": ("n2/0", "n2/1", "n2/2"),
    }
    assert placed(fleet, waiting(2, gpus=4, nodes=2)) is None
    assert placed(fleet, waiting(2, gpus=1, nodes=3)) is None


def test_a_gang_stays_in_one_rack_if_it_can() -> None:
    racks = {"n1": "a", "n2": "b", "n3": "b", "n4": "a", "n5": "a"}
    fleet = Fleet([node(name, gpus=1, labels=(("rack", rack),)) for name, rack in racks.items()])
    found = placed(fleet, waiting(1, gpus=1, nodes=3))
    assert found is not None
    assert set(found) == {"n1", "n4", "n5"}
    everywhere = placed(fleet, waiting(1, gpus=1, nodes=5))
    assert everywhere is not None
    assert set(everywhere) == set(racks)


def test_shares_fill_a_shared_gpu_first_and_never_a_slice() -> None:
    fleet = used(running(1, {"n2": (3,)}, gpu_milli=500))
    assert placed(fleet, waiting(2, gpu_milli=500)) == {"n2": ("n2/3",)}
    assert placed(fleet, waiting(2, gpu_milli=600)) != {"n2": ("n2/3",)}
    slices = Fleet([node("n1", gpus=(Gpu(id="n1/0", index=0, model="H200-MIG-1g.18gb"),))])
    assert placed(slices, waiting(2, gpus=1)) == {"n1": ("n1/0",)}
    assert placed(slices, waiting(2, gpu_milli=500)) is None


def test_a_request_without_gpus_may_use_every_node() -> None:
    fleet = used()
    assert [index.domain for index in domains_for(fleet, waiting(1).request, "default")] == [EVERYWHERE]
    assert placed(fleet, waiting(1, cpu_milli=WHOLE)) in ({"n1": ()}, {"n2": ()})


def test_could_ever_fit_ignores_what_is_held() -> None:
    fleet = used(running(1, {"n1": (0, 1, 2, 3)}), running(2, {"n2": (0, 1, 2, 3)}))
    assert placed(fleet, waiting(3, gpus=4)) is None
    assert could_ever_fit(fleet, waiting(3, gpus=4, nodes=2), "default")
    assert not could_ever_fit(fleet, waiting(3, gpus=5), "default")
    assert not could_ever_fit(fleet, waiting(3, gpus=4, nodes=2, avoid_gpus=("n1/0",)), "default")
