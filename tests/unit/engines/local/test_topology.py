"""Linked GPUs, from drivers' reports of real machines."""

from __future__ import annotations

from collections.abc import Callable

import pynvml  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.engines.local.topology import link_groups

Pair = frozenset[int]
Driver = Callable[..., dict[str, str]]


@pytest.fixture
def groups_of(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The groups of a machine, by its GPUs, which of them NVLink joins, and the NUMA node of each."""

    def ask(
        gpus: int, nvlinks: set[Pair], numa_nodes: list[int] | None = None, *, is_old: bool = False
    ) -> dict[str, str]:
        def p2p_status(one: int, other: int, index: int) -> int:
            assert index == pynvml.NVML_P2P_CAPS_INDEX_NVLINK
            if is_old:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            joined = frozenset({one, other}) in nvlinks
            return int(pynvml.NVML_P2P_STATUS_OK if joined else pynvml.NVML_P2P_STATUS_NOT_SUPPORTED)

        def common_ancestor(one: int, other: int) -> int:
            if numa_nodes is None:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            is_near = numa_nodes[one] == numa_nodes[other]
            return int(pynvml.NVML_TOPOLOGY_HOSTBRIDGE if is_near else pynvml.NVML_TOPOLOGY_SYSTEM)

        monkeypatch.setattr(pynvml, "nvmlDeviceGetP2PStatus", p2p_status)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetTopologyCommonAncestor", common_ancestor)
        return link_groups({f"g{index}": index for index in range(gpus)})

    return ask


def all_of(*members: int) -> set[Pair]:
    return {frozenset({one, other}) for one in members for other in members if one < other}


def named(**groups: tuple[int, ...]) -> dict[str, str]:
    return {f"g{index}": name.replace("_", "-") for name, indexes in groups.items() for index in indexes}


def test_all_gpus_behind_switches_are_one_group(groups_of: Driver) -> None:
    assert groups_of(8, all_of(*range(8)), [0, 0, 0, 0, 1, 1, 1, 1]) == named(nvlink_0=tuple(range(8)))


def test_bridges_join_pairs(groups_of: Driver) -> None:
    pairs = all_of(0, 1) | all_of(2, 3)
    assert groups_of(4, pairs, [0, 0, 0, 0]) == named(nvlink_0=(0, 1), nvlink_1=(2, 3))


def test_a_mesh_is_cut_where_a_way_would_lead_through_a_third(groups_of: Driver) -> None:
    """Two quads, each fully joined, with one link from each GPU to its twin: eight GPUs, but no group of eight."""
    mesh = all_of(0, 1, 2, 3) | all_of(4, 5, 6, 7) | {frozenset({n, n + 4}) for n in range(4)}
    assert groups_of(8, mesh, [0, 0, 0, 0, 1, 1, 1, 1]) == named(nvlink_0=(0, 1, 2, 3), nvlink_1=(4, 5, 6, 7))


def test_without_nvlink_the_numa_node_counts(groups_of: Driver) -> None:
    assert groups_of(4, set(), [0, 1, 0, 1]) == named(numa_0=(0, 2), numa_1=(1, 3))


def test_gpus_that_no_bridge_joins_go_by_their_numa_node(groups_of: Driver) -> None:
    assert groups_of(5, all_of(0, 1), [0, 0, 0, 0, 1]) == named(nvlink_0=(0, 1), numa_0=(2, 3))


def test_links_unknown_to_the_driver_are_not_guessed(groups_of: Driver) -> None:
    assert groups_of(4, set(), None, is_old=True) == {}
    assert groups_of(1, set(), [0]) == {}
    assert groups_of(0, set(), []) == {}


@settings(max_examples=200)
@given(data=st.data(), gpus=st.integers(0, 8))
def test_within_a_group_all_are_linked_to_each_other(data: st.DataObject, gpus: int) -> None:
    every = sorted(all_of(*range(gpus)), key=sorted)
    nvlinks = data.draw(st.sets(st.sampled_from(every))) if every else set()
    numa_nodes = data.draw(st.lists(st.integers(0, 1), min_size=gpus, max_size=gpus))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pynvml,
            "nvmlDeviceGetP2PStatus",
            lambda one, other, _: pynvml.NVML_P2P_STATUS_OK if frozenset({one, other}) in nvlinks else 5,
        )
        patch.setattr(
            pynvml,
            "nvmlDeviceGetTopologyCommonAncestor",
            lambda one, other: 30 if numa_nodes[one] == numa_nodes[other] else 50,
        )
        groups = link_groups({f"g{index}": index for index in range(gpus)})
    for name in {*groups.values()}:
        members = [int(gpu[1:]) for gpu, group in groups.items() if group == name]
        assert len(members) > 1
        pairs = all_of(*members)
        if name.startswith("nvlink"):
            assert pairs <= nvlinks
        else:
            assert len({numa_nodes[member] for member in members}) == 1
