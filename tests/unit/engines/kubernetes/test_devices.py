"""GPUs that drivers of Dynamic Resource Allocation publish, and what claims hold of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.ports import EngineUnavailable
from corral.core.model import Node, NodeState
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL
from corral.engines.kubernetes.cluster.capacities import Capacities
from corral.engines.kubernetes.cluster.nodes import FleetRules, nodes_seen
from corral.engines.kubernetes.devices import published_devices
from corral.engines.kubernetes.devices.node_devices import DeviceGone, GpuDevices, is_counted
from corral.engines.kubernetes.devices.resource_claims import make_resource_claim
from corral.engines.kubernetes.devices.resource_slices import DEVICE_CLASSES, Device, NodeSlices, devices_of
from tests.unit.engines.kubernetes.objects import Json, gpu_device, node, pod, resource_claim, resource_slice

RULES = FleetRules(models={"NVIDIA L4": "L4-24G"})


def read(*slices: Json) -> NodeSlices:
    return devices_of("gpu1", slices, DEVICE_CLASSES, RULES.models)


def devices(tmp_path: Path, *slices: Json) -> GpuDevices:
    made = GpuDevices(tmp_path, "abcd", DEVICE_CLASSES, RULES.models, lambda: None)
    made.published.replace(slices)
    made.claimed.replace([])
    return made


def seen(found: GpuDevices, *leaving: str, gpus: int = 0) -> Node:
    (one,) = nodes_seen([node(gpus=gpus)], {}, {}, (), RULES, devices=found.seen(leaving))
    return one


def ids(slices: NodeSlices) -> list[str]:
    return [device.gpu_id for device in slices.devices]


def test_attributes_give_id_model_memory_and_the_condition_of_a_claim() -> None:
    (one, other) = read(
        resource_slice(
            "gpu1",
            gpu_device("gpu-10", "GPU-b", attributes={"productName": {"string": "NVIDIA L4"}}),
            gpu_device("gpu-2", "GPU-a"),
        )
    ).devices
    assert (one.gpu_id, one.model, one.memory_bytes >> 30) == ("GPU-a", "A100-SXM4-80GB", 80)
    assert (one.driver, one.pool, one.name, one.device_class) == ("gpu.nvidia.com", "gpu1", "gpu-2", "gpu.nvidia.com")
    assert one.selector == (
        'device.driver == "gpu.nvidia.com" && "uuid" in device.attributes["gpu.nvidia.com"] && '
        'device.attributes["gpu.nvidia.com"].uuid == "GPU-a"'
    )
    assert (other.gpu_id, other.model) == ("GPU-b", "L4-24G")


def test_mig_devices_have_a_class_and_a_model_of_their_own() -> None:
    mig = {"type": {"string": "mig"}, "profile": {"string": "1g.10gb"}}
    (one,) = read(resource_slice("gpu1", gpu_device("gpu-0-mig-1", "MIG-a", attributes=mig))).devices
    assert (one.gpu_id, one.model, one.device_class) == ("MIG-a", "A100-SXM4-80GB-MIG-1g.10gb", "mig.nvidia.com")


def test_a_device_without_a_uuid_is_asked_for_by_what_no_other_has() -> None:
    def amd(number: int, address: str) -> Json:
        texts = {"type": "amdgpu", "productName": "AMD Instinct MI300X", "pciAddr": address}
        attributes: Json = {key: {"string": value} for key, value in texts.items()}
        return {"name": f"gpu-{number}-128", "attributes": attributes}

    found = read(resource_slice("gpu1", amd(0, "0000:01"), amd(1, "0000:02"), driver="gpu.amd.com"))
    assert ids(found) == ["gpu1-gpu.amd.com-gpu-0-128", "gpu1-gpu.amd.com-gpu-1-128"]
    assert found.devices[1].selector.endswith('device.attributes["gpu.amd.com"].pciAddr == "0000:02"')
    assert found.devices[0].model == "AMD-Instinct-MI300X"
    # These differ in nothing: no plan can name one.
    twins = read(resource_slice("gpu1", amd(0, "0000:01"), amd(1, "0000:01"), driver="gpu.amd.com"))
    assert (ids(twins), twins.unnamed) == ([], 2)


def test_an_attribute_of_another_domain_is_asked_for_there() -> None:
    place = {"resource.kubernetes.io/pciBusID": {"string": "0000:01:00.0"}, "type": {"string": "gpu"}}
    (one,) = read(resource_slice("gpu1", {"name": "a", "attributes": place}, driver="gpu.intel.com")).devices
    assert 'device.attributes["resource.kubernetes.io"].pciBusID == "0000:01:00.0"' in one.selector


def test_devices_that_are_no_gpus_are_left_out() -> None:
    machine = gpu_device("gpu-vfio-0", "GPU-a", attributes={"type": {"string": "vfio"}})
    network = resource_slice("gpu1", gpu_device("nic-0", "NIC-a"), driver="net.example.org")
    assert ids(read(resource_slice("gpu1", machine), network)) == []


def test_a_pool_counts_when_all_slices_of_its_newest_generation_are_there() -> None:
    old = resource_slice("gpu1", gpu_device("gpu-0", "GPU-old"), name="a")
    half = resource_slice("gpu1", gpu_device("gpu-0", "GPU-0"), name="b", generation=2, of=2)
    rest = resource_slice("gpu1", gpu_device("gpu-1", "GPU-1"), name="c", generation=2, of=2)
    assert ids(read(old)) == ["GPU-old"]
    assert ids(read(old, half)) == []
    assert ids(read(old, half, rest)) == ["GPU-0", "GPU-1"]


def test_a_tainted_device_is_listed_and_taken(tmp_path: Path) -> None:
    taints = [{"key": "gpu.nvidia.com/unhealthy", "value": "xid", "effect": "NoSchedule"}]
    slices = resource_slice("gpu1", gpu_device("gpu-0", "GPU-0", taints=taints), gpu_device("gpu-1", "GPU-1"))
    found = devices(tmp_path, slices)
    one = seen(found)
    assert [gpu.id for gpu in one.gpus] == ["GPU-0", "GPU-1"]
    assert one.taken.gpus == ("GPU-0",)
    assert found.why_not("gpu1", ["GPU-0"]) == "GPU-0: its driver has tainted it: gpu.nvidia.com/unhealthy=xid"


def test_devices_that_claims_of_others_hold_are_taken(tmp_path: Path) -> None:
    found = devices(tmp_path, resource_slice("gpu1", *(gpu_device(f"gpu-{n}", f"GPU-{n}") for n in range(4))))
    own = resource_claim("mine", ("gpu1", "gpu-0"), labels={INSTALLATION_LABEL: "abcd"})
    watching = resource_claim("monitor", ("gpu1", "gpu-3"), adminAccess=True)
    found.claimed.replace([own, watching, resource_claim("theirs", ("gpu1", "gpu-1"), ("gpu2", "gpu-2"))])
    assert seen(found).taken.gpus == ("GPU-1",)
    assert found.why_not("gpu1", ["GPU-0", "GPU-1"]) == "GPU-1: ResourceClaim default/theirs has it"
    # The GPU of a pod that has not ended although its attempt is over.
    assert seen(found, "GPU-3").taken.gpus == ("GPU-1", "GPU-3")

    found.claimed.put(resource_claim("theirs", ("gpu1", "gpu-2")))
    assert seen(found).taken.gpus == ("GPU-2",)
    found.claimed.remove(resource_claim("theirs", ("gpu1", "gpu-2")))
    assert seen(found).taken.gpus == ()


def test_a_gpu_that_can_be_cut_is_one_gpu_and_taken_with_each_part(tmp_path: Path) -> None:
    used = [{"counterSet": "gpu-0-counters", "counters": {"memory": {"value": "10Gi"}}}]
    mig = {"type": {"string": "mig"}, "profile": {"string": "1g.10gb"}}
    whole = gpu_device("gpu-0", "GPU-0", consumesCounters=used)
    parts = [gpu_device(f"gpu-0-mig-{n}", attributes=mig, consumesCounters=used) for n in range(2)]
    found = devices(tmp_path, resource_slice("gpu1", whole, *parts))
    assert [gpu.id for gpu in seen(found).gpus] == ["GPU-0"]
    found.claimed.put(resource_claim("theirs", ("gpu1", "gpu-0-mig-1")))
    assert seen(found).taken.gpus == ("GPU-0",)
    assert found.why_not("gpu1", ["GPU-0"]) == "GPU-0: ResourceClaim default/theirs has a part of it"


def test_a_driver_takes_the_place_of_a_device_plugin_at_once(tmp_path: Path) -> None:
    found = devices(tmp_path, resource_slice("gpu1", gpu_device("gpu-0", "GPU-0")))
    counts = Capacities(tmp_path / "capacities", RULES.is_gpu)
    counts.complete(node(gpus=8))
    away = counts.complete(node(gpus=0))
    (one,) = nodes_seen([away], {}, {}, (), RULES, devices=found.seen(()))
    assert ([gpu.id for gpu in one.gpus], one.state) == (["GPU-0"], NodeState.READY)
    (without,) = nodes_seen([away], {}, {}, (), RULES)
    assert (len(without.gpus), without.state) == (8, NodeState.CORDONED)


def test_a_device_plugin_on_the_same_node_goes_before(tmp_path: Path) -> None:
    found = devices(tmp_path, resource_slice("gpu1", gpu_device("gpu-0", "GPU-0")))
    assert [gpu.id for gpu in seen(found, gpus=1).gpus] == ["gpu1-gpu0"]


def test_devices_of_a_driver_that_is_away_are_remembered_in_their_place_as_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = resource_slice("gpu1", gpu_device("gpu-0", "GPU-0"), gpu_device("gpu-1", "GPU-1"))
    devices(tmp_path, both)
    # A server that starts while the driver is away.
    found = devices(tmp_path)
    assert (len(seen(found).gpus), seen(found).taken.gpus) == (2, ("GPU-0", "GPU-1"))
    assert found.why_not("gpu1", ["GPU-1"]) == "GPU-1: its driver does not publish it now"
    found.published.put(resource_slice("gpu1", gpu_device("gpu-1", "GPU-1")))
    assert [(gpu.id, gpu.index) for gpu in seen(found).gpus] == [("GPU-0", 0), ("GPU-1", 1)]
    assert seen(found).taken.gpus == ("GPU-0",)
    monkeypatch.setattr(published_devices, "AWAY_SECONDS", 0.0)
    assert [gpu.id for gpu in seen(found).gpus] == ["GPU-1"]
    with pytest.raises(DeviceGone, match="no driver publishes GPU-0 on gpu1 any more"):
        found.of_plan("gpu1", ["GPU-0"])
    assert found.why_not("gpu1", ["GPU-0"]) == "no driver publishes GPU-0 any more"


def test_each_change_of_a_slice_is_seen_and_reported(tmp_path: Path) -> None:
    changes: list[int] = []
    found = GpuDevices(tmp_path, "abcd", DEVICE_CLASSES, {}, lambda: changes.append(1))
    found.published.replace([resource_slice("gpu1", gpu_device("gpu-0", "GPU-0"))])
    found.published.put(resource_slice("gpu1", gpu_device("nic", "x"), driver="net.example.org"))
    assert len(changes) == 1
    found.published.put(resource_slice("gpu1", gpu_device("gpu-0", "GPU-0"), gpu_device("gpu-1", "GPU-1")))
    assert ids(found.published.of("gpu1")) == ["GPU-0", "GPU-1"]
    found.published.remove(resource_slice("gpu1"))
    assert [bool(device.trouble) for device in found.published.of("gpu1").devices] == [True, True]
    assert len(changes) == 3


def test_a_plan_names_devices_only_where_a_driver_publishes_them(tmp_path: Path) -> None:
    found = devices(tmp_path, resource_slice("gpu1", gpu_device("gpu-0", "GPU-0"), gpu_device("gpu-1", "GPU-1")))
    assert [device.name for device in found.of_plan("gpu1", ["GPU-1", "GPU-0"])] == ["gpu-1", "gpu-0"]
    assert found.of_plan("gpu2", ["gpu2-gpu0"]) == ()
    assert found.of_plan("gpu2", []) == ()
    assert is_counted("gpu1", "gpu1-gpu12")
    assert not is_counted("gpu1", "gpu1-gpu.amd.com-gpu-0-128")
    assert found.devices() == {"GPU-0": "GPU-0", "GPU-1": "GPU-1"}


def test_a_launch_waits_until_it_is_known_which_gpus_are_published(tmp_path: Path) -> None:
    found = GpuDevices(tmp_path, "abcd", DEVICE_CLASSES, {}, lambda: None)
    with pytest.raises(EngineUnavailable, match="which GPUs drivers publish is unknown: not asked yet"):
        found.of_plan("gpu1", ["GPU-0"])
    assert found.of_plan("gpu1", ["gpu1-gpu0"]) == ()


def test_a_claim_asks_for_the_devices_of_the_plan_and_belongs_to_its_pod() -> None:
    owner = pod("corral-abcd-j-1-1-0", namespace="jobs", labels={INSTALLATION_LABEL: "abcd"})
    owner["metadata"]["uid"] = "u-1"
    planned = Device(
        driver="d", pool="p", name="n", gpu_id="GPU-1", model="A", memory_bytes=0, device_class="c", selector="true"
    )
    claim = make_resource_claim(owner, [planned, planned])
    assert claim["metadata"] == {
        "name": "corral-abcd-j-1-1-0",
        "namespace": "jobs",
        "labels": {INSTALLATION_LABEL: "abcd"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "corral-abcd-j-1-1-0", "uid": "u-1"}],
    }
    requests = claim["spec"]["devices"]["requests"]
    assert [one["name"] for one in requests] == ["gpu-0", "gpu-1"]
    assert requests[0]["exactly"] == {
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": "true"}}],
    }
