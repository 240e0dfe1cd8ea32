"""Kubernetes' nodes as corral's, with what other pods hold there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corral.core.model import Node, NodeState
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL, NodeCache, PodCache
from corral.engines.kubernetes.cluster.capacities import Capacities
from corral.engines.kubernetes.cluster.exporters import ExporterPods
from corral.engines.kubernetes.cluster.nodes import (
    FleetRules,
    Toleration,
    gpus_asked,
    nodes_seen,
    parse_toleration,
)
from tests.unit.engines.kubernetes.objects import Json, condition, node, pod

NONE = ExporterPods("")
RULES = FleetRules(tolerations=(Toleration(key="nvidia.com/gpu"),))


def seen(
    *nodes: Json,
    others: dict[str, Counter[str]] | None = None,
    named: frozenset[str] = frozenset(),
    lost: frozenset[str] = frozenset(),
) -> list[Node]:
    return list(nodes_seen(nodes, others or {}, {"gpu1": named} if named else {}, lost, RULES))


def test_labels_give_model_memory_and_place() -> None:
    (one,) = seen(node(gpus=2))
    assert [(gpu.id, gpu.model, gpu.memory_bytes >> 30) for gpu in one.gpus] == [
        ("gpu1-gpu0", "A100-SXM4-80GB", 80),
        ("gpu1-gpu1", "A100-SXM4-80GB", 80),
    ]
    assert dict(one.labels)["zone"] == "eu-1a"
    assert (one.cpu_milli, one.memory_bytes, one.state) == (15_800, 64 * 2**30, NodeState.READY)


def test_gpus_of_amds_device_plugin_have_the_model_of_its_label() -> None:
    with_amd = node(gpus=0, capacity={"amd.com/gpu": "8"}, labels={"amd.com/gpu.product-name": "AMD_Instinct_MI300X"})
    del with_amd["metadata"]["labels"]["nvidia.com/gpu.product"]
    (one,) = seen(with_amd)
    assert [gpu.model for gpu in one.gpus] == ["AMD_Instinct_MI300X"] * 8
    assert gpus_asked(with_amd, ["gpu1-gpu0", "gpu1-gpu7"], RULES) == {"amd.com/gpu": 2}


def test_gpus_of_others_are_taken_first_from_those_that_no_plan_names() -> None:
    held = {"gpu1": Counter({"nvidia.com/gpu": 2, "cpu": 500, "memory": 7})}
    (one,) = seen(node(gpus=4), others=held, named=frozenset({"gpu1-gpu3"}))
    assert one.taken.gpus == ("gpu1-gpu1", "gpu1-gpu2")
    assert (one.taken.cpu_milli, one.taken.memory_bytes) == (500, 7)


def test_unhealthy_devices_stay_listed_and_count_as_taken() -> None:
    (one,) = seen(node(gpus=4, allocatable_gpus=3))
    assert len(one.gpus) == 4
    assert one.taken.gpus == ("gpu1-gpu3",)


def test_slices_are_gpus_of_their_own_model() -> None:
    mixed = node(gpus=1, capacity={"nvidia.com/mig-1g.10gb": "2"})
    (one,) = seen(mixed)
    assert [gpu.model for gpu in one.gpus] == ["A100-SXM4-80GB", *["A100-SXM4-80GB-MIG-1g.10gb"] * 2]
    assert gpus_asked(mixed, ["gpu1-gpu0", "gpu1-gpu2"], RULES) == {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 1}
    assert gpus_asked(None, ["gpu1-gpu0"], RULES) == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("resource", "labels", "expected"),
    [
        ("nvidia.com/gpu", {"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}, ("", 80)),
        (
            "nvidia.com/gpu",
            {
                "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED",
                "nvidia.com/gpu.replicas": "4",
                "nvidia.com/gpu.sharing-strategy": "time-slicing",
            },
            ("-SHARED", 20),
        ),
        (
            "nvidia.com/gpu.shared",
            {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.sharing-strategy": "mps"},
            ("-SHARED", 40),
        ),
        ("nvidia.com/gpu.shared", {}, ("-SHARED", 40)),
        (
            "nvidia.com/mig-1g.10gb.shared",
            {"nvidia.com/mig-1g.10gb.replicas": "5", "nvidia.com/mig-1g.10gb.memory": "10240"},
            ("-MIG-1g.10gb-SHARED", 2),
        ),
    ],
)
def test_shares_have_a_model_of_their_own_and_their_part_of_the_memory(
    resource: str, labels: dict[str, str], expected: tuple[str, int]
) -> None:
    (one,) = seen(node(gpus=0, capacity={resource: "2"}, labels=labels))
    assert {(gpu.model, gpu.memory_bytes >> 30) for gpu in one.gpus} == {(f"A100-SXM4-80GB{expected[0]}", expected[1])}
    assert gpus_asked(node(gpus=0, capacity={resource: "2"}), ["gpu1-gpu1"], RULES) == {resource: 1}


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"spec": {"unschedulable": True}}, NodeState.CORDONED, "cordoned in Kubernetes"),
        (
            {"spec": {"unschedulable": True}, "annotations": {"corral/withheld": "new disks"}},
            NodeState.CORDONED,
            "new disks",
        ),
        ({"conditions": [condition("Ready", "Unknown", message="stopped")]}, NodeState.CORDONED, "not ready: stopped"),
        ({"conditions": [condition("Ready", "False", message="no network")]}, NodeState.CORDONED, "no network"),
        (
            {"conditions": [condition("Ready", "True"), condition("DiskPressure", "True", message="full")]},
            NodeState.CORDONED,
            "DiskPressure: full",
        ),
        (
            {"spec": {"taints": [{"key": "team", "value": "bio", "effect": "NoSchedule"}]}},
            NodeState.CORDONED,
            "tainted in Kubernetes: team=bio:NoSchedule",
        ),
        ({"spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}}, NodeState.READY, ""),
        ({"spec": {"taints": [{"key": "team", "effect": "PreferNoSchedule"}]}}, NodeState.READY, ""),
    ],
)
def test_why_a_node_takes_no_pod(changes: dict[str, Any], state: NodeState, words: str) -> None:
    (one,) = seen(node(**changes))
    assert one.state is state
    assert words in one.reason


def test_a_node_is_lost_when_nothing_is_heard_from_it_for_a_time(tmp_path: Path) -> None:
    """After an outage of the API server, Kubernetes says so of healthy nodes, until their next reports arrive."""
    silent = node(conditions=[condition("Ready", "Unknown", message="stopped posting")])
    capacities = Capacities(tmp_path / "capacities", RULES.is_gpu)
    patient, hasty = (NodeCache(lambda: None, seconds, capacities) for seconds in (1e6, 0.0))
    for cache in (patient, hasty):
        cache.replace([node("gpu2"), silent])
        assert cache.silent() == {"gpu1"}
    assert not patient.lost()
    assert hasty.lost() == {"gpu1"}
    (one,) = seen(silent, lost=hasty.lost())
    assert (one.state, one.reason) == (NodeState.DOWN, "not ready: stopped posting")
    hasty.put(node())
    assert (hasty.silent(), hasty.lost()) == (frozenset(), frozenset())


def test_gpus_that_a_kubelet_does_not_report_after_its_start_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a server that starts at the same time."""
    path = tmp_path / "capacities"
    Capacities(path, RULES.is_gpu).complete(node(gpus=4))
    starting = node(gpus=0)
    fresh = Capacities(path, RULES.is_gpu)
    (one,) = seen(fresh.complete(starting))
    assert len(one.gpus) == len(one.taken.gpus) == 4
    assert (one.state, "no nvidia.com/gpu" in one.reason) == (NodeState.CORDONED, True)
    (one,) = seen(fresh.complete(node(gpus=4)))
    assert (one.state, one.taken.gpus) == (NodeState.READY, ())
    monkeypatch.setattr("corral.engines.kubernetes.cluster.capacities.AWAY_SECONDS", 0.0)
    assert seen(fresh.complete(starting))[0].gpus == ()


def test_a_pod_whose_label_was_taken_away_is_not_ours_any_more() -> None:
    removed: list[str] = []
    cache = PodCache("me", ("default",), lambda _: None, removed.append, NONE)
    cache.replace([gpu_pod("mine", 4, labels={INSTALLATION_LABEL: "me"})])
    cache.put(gpu_pod("mine", 4))
    assert (removed, cache.get("mine")) == (["mine"], None)
    assert cache.others()["gpu1"]["nvidia.com/gpu"] == 4


def test_changes_are_reported_after_the_trouble_is_over() -> None:
    """Callbacks read nothing during an outage: a missed end would be missed for ever."""
    troubles: list[str] = []
    cache = PodCache("me", ("default",), lambda _: troubles.append(cache.trouble), lambda _: None, NONE)
    cache.failed(RuntimeError("no answer"))
    cache.replace([gpu_pod("mine", 4, labels={INSTALLATION_LABEL: "me"})])
    assert troubles == [""]


def test_control_planes_and_nodes_that_are_not_selected_are_left_out_unless_a_plan_names_them() -> None:
    control = node(
        "master", spec={"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}
    )
    assert seen(control) == []
    rules = FleetRules(selector={"corral": "yes"})
    assert nodes_seen([node()], {}, {}, (), rules) == ()
    (kept,) = nodes_seen([node()], {}, {"gpu1": frozenset({"gpu1-gpu0"})}, (), rules)
    assert kept.reason == "not selected for corral any more"


def test_a_node_with_as_many_pods_as_its_kubelet_runs_takes_no_more() -> None:
    """Jobs would be placed there again and again, and taken back."""
    small = node(capacity={"pods": "12"})
    held = {"gpu1": Counter({"pods": 10})}
    (free,) = nodes_seen([small], held, {}, (), RULES, {"gpu1": 1})
    (full,) = nodes_seen([small], held, {}, (), RULES, {"gpu1": 2})
    assert (free.state, full.state) == (NodeState.READY, NodeState.CORDONED)
    assert full.reason == "it has 12 pods, and its kubelet runs 12 at most"


def test_tolerations_are_written_as_taints() -> None:
    assert parse_toleration("a=b:NoSchedule") == Toleration(key="a", value="b", effect="NoSchedule")
    assert parse_toleration("nvidia.com/gpu") == Toleration(key="nvidia.com/gpu")
    with pytest.raises(ValueError, match="not of the form"):
        parse_toleration("a=b:Sometimes")


def gpu_pod(name: str, count: int, **more: object) -> Json:
    return pod(name, requests={"nvidia.com/gpu": str(count)}, **more)  # type: ignore[arg-type]


def test_pods_of_others_are_summed_by_node_at_the_cost_of_each_change() -> None:
    changed: list[str] = []
    cache = PodCache("me", ("default",), lambda one: changed.append(one["metadata"]["name"]), changed.append, NONE)
    mine = gpu_pod("mine", 4, labels={INSTALLATION_LABEL: "me"})
    cache.replace([gpu_pod("a", 1), gpu_pod("b", 2, node=None), gpu_pod("c", 3, phase="Succeeded"), mine])
    assert cache.others()["gpu1"]["nvidia.com/gpu"] == 1
    cache.put(gpu_pod("b", 2))
    assert cache.others()["gpu1"]["nvidia.com/gpu"] == 3
    cache.put(gpu_pod("a", 1, phase="Failed"))
    cache.remove(gpu_pod("b", 2))
    assert cache.others()["gpu1"]["nvidia.com/gpu"] == 0
    cache.put(gpu_pod("d", 5, node=None, nominatedNodeName="gpu1"))
    assert cache.others()["gpu1"]["nvidia.com/gpu"] == 5
    assert changed == ["mine"]
    assert set(cache.own()) == {"mine"}
    cache.replace([])
    assert changed == ["mine", "mine"]
    assert cache.get("mine") is None


def test_a_heartbeat_of_a_node_is_no_change(tmp_path: Path) -> None:
    changes: list[int] = []
    cache = NodeCache(lambda: changes.append(1), 9.0, Capacities(tmp_path / "capacities", RULES.is_gpu))
    cache.replace([node()])
    beat = node()
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:10Z"
    cache.put(beat)
    assert len(changes) == 1
    cache.put(node(spec={"unschedulable": True}))
    assert len(changes) == 2
