"""The options for virtual hardware: their meaning and their refusals."""

from __future__ import annotations

import pynvml  # type: ignore[import-untyped]
import pytest

from corral.engines.local.fleet import HostFleet, VirtualFleet, fleet_for, host_name, model_name
from corral.engines.local.virtual import GIB, NodeGroup, gpu_spec, parse_virtual_gpus, parse_virtual_nodes


def test_gpus_of_one_node() -> None:
    assert parse_virtual_gpus("8xA100-80G") == NodeGroup(nodes=1, gpus=8, model="A100-80G")


def test_groups_of_nodes() -> None:
    assert parse_virtual_nodes("6x4xA10, 5x8xA100-80G") == (
        NodeGroup(nodes=6, gpus=4, model="A10"),
        NodeGroup(nodes=5, gpus=8, model="A100-80G"),
    )


def test_gpus_can_be_linked_in_groups() -> None:
    assert parse_virtual_gpus("8xA100-80G/4") == NodeGroup(nodes=1, gpus=8, model="A100-80G", linked=4)
    first, second = fleet_for(virtual_nodes_text="2x5xA10/2").nodes()
    assert [gpu.link_group for gpu in first.gpus] == ["nvlink-0", "nvlink-0", "nvlink-1", "nvlink-1", "nvlink-2"]
    assert [gpu.link_group for gpu in second.gpus] == [gpu.link_group for gpu in first.gpus]
    (unlinked,) = fleet_for(virtual_gpus="2xA10").nodes()
    assert {gpu.link_group for gpu in unlinked.gpus} == {""}


def test_slices_can_be_imagined_too() -> None:
    (node,) = fleet_for(virtual_gpus="7xH200-MIG-1g.18gb").nodes()
    assert [(gpu.model, gpu.memory_bytes) for gpu in node.gpus] == [("H200-MIG-1g.18gb", 18 * GIB)] * 7
    assert gpu_spec("H200-MIG-1g.18gb").tdp_watts == pytest.approx(gpu_spec("H200").tdp_watts / 7)
    assert gpu_spec("A100-80G-MIG-3g.40gb").memory_bytes == 40 * GIB


@pytest.mark.parametrize("text", ["8xA100/", "8xA100/0", "8xA100/x", "8xA100/65", "8xA100/4/2"])
def test_bad_links_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="expected COUNTxMODEL, for example 8xA100-80G"):
        parse_virtual_gpus(text)


@pytest.mark.parametrize("text", ["", "8", "A100", "8x", "xA100", "0xA100", "-1xA100", "65xA100", "8xA 100", "8x../x"])
def test_bad_virtual_gpus_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="expected COUNTxMODEL, for example 8xA100-80G"):
        parse_virtual_gpus(text)


@pytest.mark.parametrize("text", ["", "4xA10", "11x4", "0x4xA10", "11x0xA10", "11x4xA10,", "10001x1xT4", "1x1x1x1"])
def test_bad_virtual_nodes_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="expected NODESxGPUSxMODEL"):
        parse_virtual_nodes(text)


@pytest.mark.parametrize(
    ("model", "memory_gib"),
    [("A10", 24), ("A100-40G", 40), ("A100-80G", 80), ("H200-141G", 141), ("H200", 141), ("T4", 16), ("V100-32GB", 32)],
)
def test_known_models_have_their_memory(model: str, memory_gib: int) -> None:
    assert gpu_spec(model).memory_bytes == memory_gib * GIB


def test_an_unknown_model_is_an_average_gpu() -> None:
    assert gpu_spec("Foo").memory_bytes == 24 * GIB
    assert gpu_spec("Foo-96G").memory_bytes == 96 * GIB
    assert gpu_spec("Foo").tdp_watts > gpu_spec("Foo").idle_watts > 0


def test_single_virtual_node_has_the_name_of_the_host() -> None:
    (node,) = fleet_for(virtual_gpus="2xA100-80G").nodes()
    assert node.id == host_name()
    assert [(gpu.index, gpu.model, gpu.memory_bytes) for gpu in node.gpus] == [
        (0, "A100-80G", 80 * GIB),
        (1, "A100-80G", 80 * GIB),
    ]
    assert (node.cpu_milli, node.memory_bytes) == (32_000, 128 * GIB)
    assert dict(node.labels) == {"virtual": "true", "gpu-model": "A100-80G"}


def test_many_virtual_nodes_are_numbered_per_model_and_all_ids_differ() -> None:
    nodes = fleet_for(virtual_nodes_text="6x4xA10,4x4xA100-80G,1x2xA10").nodes()
    assert [node.id for node in nodes][:2] == ["a10-001", "a10-002"]
    assert [node.id for node in nodes][-2:] == ["a100-80g-004", "a10-007"]
    gpu_ids = [gpu.id for node in nodes for gpu in node.gpus]
    assert len(set(gpu_ids)) == len(gpu_ids) == 42


def test_virtual_gpus_with_virtual_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        fleet_for(virtual_gpus="1xT4", virtual_nodes_text="1x1xT4")


def test_a_machine_without_a_driver_is_a_node_for_cpu_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fails)
    fleet = fleet_for()
    assert isinstance(fleet, HostFleet)
    (node,) = fleet.nodes()
    assert node.gpus == ()
    assert node.cpu_milli >= 1000
    assert node.memory_bytes > 0
    assert node.load is not None
    assert 0.0 <= node.load <= 1.0


def test_a_virtual_fleet_knows_its_data_sheets() -> None:
    fleet = fleet_for(virtual_gpus="1xT4")
    assert isinstance(fleet, VirtualFleet)
    assert fleet.spec("T4").tdp_watts == 70.0


@pytest.mark.parametrize(
    ("product", "short"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-80G"),
        ("NVIDIA A100-PCIE-40GB", "A100-40G"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100-80G"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-32GB", "V100-32G"),
        ("NVIDIA L40S", "L40S"),
    ],
)
def test_product_names_become_the_names_people_ask_for(product: str, short: str) -> None:
    assert model_name(product) == short
