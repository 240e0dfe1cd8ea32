"""Exporters found by the labels of their pods, and the devices that pods have reported."""

from __future__ import annotations

from typing import Any

import pytest

from corral.engines.kubernetes.attempts.pod_attempt import Attempt
from corral.engines.kubernetes.cluster.exporters import ExporterPods
from corral.engines.kubernetes.cluster.occupancy import devices_of
from tests.unit.engines.kubernetes.objects import Json, pod

DCGM = {"app": "nvidia-dcgm-exporter"}


def exporter(name: str = "one", namespace: str = "gpu-operator", **changes: Any) -> Json:
    return pod(name, namespace=namespace, **{"labels": DCGM, "podIP": "10.1.2.3", **changes})


@pytest.mark.parametrize(
    "other",
    [
        exporter(namespace="of-a-user"),
        exporter(labels={"app": "web"}),
        exporter(phase="Pending"),
        exporter(podIP=""),
        exporter(is_leaving=True),
    ],
)
def test_only_pods_that_run_in_the_named_namespace_count(other: Json) -> None:
    pods = ExporterPods("gpu-operator")
    pods.put(other)
    assert pods.found() == []


def test_the_port_is_that_of_the_pod_and_a_pod_that_is_gone_is_forgotten() -> None:
    pods = ExporterPods("gpu-operator")
    other = exporter("two", podIP="fd00::7", node="gpu2")
    other["spec"]["containers"][0]["ports"] = [{"name": "metrics", "containerPort": 9500}]
    for one in (exporter(), other):
        pods.put(one)
    assert [(one.node, one.address) for one in pods.found()] == [("gpu1", "10.1.2.3:9400"), ("gpu2", "[fd00::7]:9500")]
    pods.put(exporter(phase="Failed"))
    pods.remove(other)
    assert pods.found() == []


def attempt(name: str, gpus: tuple[str, ...], devices: str) -> Attempt:
    return Attempt(
        id=name,
        nodes=("gpu1",),
        gpus=(gpus,),
        grace_seconds=1.0,
        limit_seconds=None,
        created_at=0.0,
        pods=(name,),
        devices={0: devices},
    )


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ("GPU-1,GPU-2", {"a": "GPU-1", "b": "GPU-2", "c": "GPU-9"}),
        ("GPU-1", {"a": "", "b": "", "c": "GPU-9"}),
        ("0,3", {"a": "0", "b": "3", "c": "GPU-9"}),
        ("all", {"a": "", "b": "", "c": "GPU-9"}),
        ("", {"a": "", "b": "", "c": "GPU-9"}),
        # An image may say anything: what two pods claim is unknown.
        ("GPU-1,GPU-9", {"a": "GPU-1", "b": "", "c": ""}),
    ],
)
def test_devices_count_if_they_are_ids_of_as_many_gpus_and_of_one_pod(devices: str, expected: dict[str, str]) -> None:
    assert devices_of([attempt("j-1.1", ("a", "b"), devices), attempt("j-2.1", ("c",), "GPU-9")]) == expected
