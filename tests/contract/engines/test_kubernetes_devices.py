"""GPUs that a driver of Dynamic Resource Allocation publishes, on a real Kubernetes with nodes of both kinds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from corral.control.ports import EngineUnavailable, Instance, LaunchOrder
from corral.core.model import EndReason, Node
from corral.engines.kubernetes import cluster_checks, leftovers
from corral.engines.kubernetes.api.client import ApiClient, Json
from corral.engines.kubernetes.api.rights import RIGHTS
from corral.engines.kubernetes.api.roles import roles
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pods import pod_name
from corral.engines.kubernetes.engine import KubernetesEngine
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.engines.test_kubernetes_namespaces import with_token
from tests.contract.kubernetes_harness import NAMESPACE, KubernetesHarness
from tests.servers.kubernetes.cluster import KubernetesCluster
from tests.servers.kubernetes.node import gpu_device

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow

NODE = "gpu2"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
SHOW = "echo $PREPARED_GPUS $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES"
STAY = "while :; do sleep 0.1; done"


class DeviceHarness(KubernetesHarness):
    """On the node whose GPUs a driver publishes."""

    def __init__(self, root: Path, cluster: KubernetesCluster) -> None:
        self.rules = {"mounts": (), "pending_seconds": 4.0}
        #: the instances of all orders, in place of their own
        self.placed: tuple[Instance, ...] = ()
        #: a token of another account than the administrator's
        self.token = ""
        super().__init__(root, cluster.access)

    def new_engine(self) -> KubernetesEngine:
        engine = super().new_engine()
        if not self.token:
            return engine
        engine.close()
        rules = PodRules(namespace=NAMESPACE, default_image=self.image)
        api = ApiClient(with_token(self.kubeconfig, self.token))
        return KubernetesEngine(root=self.root, api=api, rules=replace(rules, **self.rules), look_seconds=0.2)

    def launch(self, launch_order: LaunchOrder) -> str:
        # A server launches nothing before it has seen the cluster.
        self.engine.observe()
        return super().launch(launch_order)

    def node_name(self, rank: int) -> str:
        return NODE

    def _placed(self, instance: Instance) -> Instance:
        if self.placed:
            return self.placed[instance.rank]
        gpu_ids = tuple(f"GPU-{NODE}-{index}" for index in instance.gpu_indexes)
        return replace(instance, node=NODE, gpu_ids=gpu_ids)

    def node(self, name: str = NODE) -> Node:
        return next(node for node in self.engine.observe().nodes if node.id == name)

    def claims(self) -> list[Json]:
        selector = f"corral/installation={self.engine.describe()['installation']}"
        found: list[Json] = self.api.get(CLAIMS, {"labelSelector": selector})["items"]
        return found

    def devices(self, attempt_id: str = "j-1.1", rank: int = 0) -> list[str]:
        """The names of the devices that Kubernetes has allocated to a pod."""
        name = pod_name(self.engine.describe()["installation"], attempt_id, rank)
        status = self.api.get(f"{CLAIMS}/{name}").get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        return [result["device"] for result in results]


@pytest.fixture
def cluster(tmp_path: Path, device_cluster: KubernetesCluster) -> Iterator[DeviceHarness]:
    harness = DeviceHarness(tmp_path / "engine", device_cluster)
    yield harness
    harness.clean_up()


def on(gpus: tuple[int, ...], text: str, attempt_id: str = "j-1.1") -> LaunchOrder:
    """On these GPUs of the node with a driver."""
    wanted = order(*script(text), attempt_id=attempt_id, gpus=len(gpus))
    return replace(wanted, instances=tuple(replace(one, gpu_indexes=gpus) for one in wanted.instances))


def prepared(node_cluster: KubernetesCluster) -> list[Path]:
    return list((node_cluster.node(NODE).devices / "cdi").iterdir())


def test_nodes_of_both_kinds_have_the_same_gpus(cluster: DeviceHarness) -> None:
    counted, published = cluster.node("gpu1"), cluster.node()
    assert [gpu.id for gpu in counted.gpus] == [f"gpu1-gpu{index}" for index in range(4)]
    assert [gpu.id for gpu in published.gpus] == [f"GPU-gpu2-{index}" for index in range(4)]
    assert {(gpu.model, gpu.memory_bytes) for node in (counted, published) for gpu in node.gpus} == {
        ("A100-SXM4-80GB", 80 << 30)
    }
    assert published.taken.gpus == ()


def test_the_gpu_of_the_plan_is_the_gpu_in_the_container(
    cluster: DeviceHarness, device_cluster: KubernetesCluster
) -> None:
    cluster.launch(on((3, 1), f"{SHOW}; exit 3"))
    cluster.launch(on((0,), f"{SHOW}; {STAY}", "j-2.1"))
    assert cluster.listener.ended().exit_code == 3
    wait_until(lambda: "\n" in cluster.output("j-2.1"), "its log is read")
    assert cluster.output() == "GPU-gpu2-3,GPU-gpu2-1 void 0,1\n"
    assert cluster.output("j-2.1") == "GPU-gpu2-0 void 0\n"
    assert cluster.devices("j-2.1") == ["gpu-0"]
    assert cluster.node().taken.gpus == ()
    assert cluster.engine.held_devices()["GPU-gpu2-0"] == "GPU-gpu2-0"

    # Nothing is left of an attempt whose end is recorded.
    cluster.engine.forget(["j-1.1"])
    wait_until(lambda: len(cluster.claims()) == 1, "its claim is removed with its pod")
    cluster.engine.stop("j-2.1", 1.0)
    cluster.listener.ended("j-2.1")
    cluster.engine.forget(["j-2.1"])
    wait_until(lambda: not cluster.own_pods() and not cluster.claims(), "nothing stays")
    wait_until(lambda: not prepared(device_cluster), "nothing stays prepared")


def test_the_gpus_of_a_job_can_be_used_again_at_once(cluster: DeviceHarness) -> None:
    for number in range(1, 6):
        cluster.launch(on((2,), SHOW, f"j-{number}.1"))
        assert cluster.listener.ended(f"j-{number}.1").exit_code == 0
        assert cluster.output(f"j-{number}.1") == "GPU-gpu2-2 void 0\n"
        assert cluster.node().taken.gpus == ()
    cluster.engine.forget([f"j-{number}.1" for number in range(1, 6)])
    wait_until(lambda: not cluster.own_pods() and not cluster.claims(), "nothing stays")


def test_a_gang_on_nodes_of_both_kinds_begins_as_a_whole(cluster: DeviceHarness) -> None:
    text = 'echo "$MASTER_ADDR ${PREPARED_GPUS:-$NVIDIA_VISIBLE_DEVICES}"'
    both = (
        Instance(rank=0, node="gpu1", gpu_ids=("gpu1-gpu0",), gpu_indexes=(0,)),
        Instance(rank=1, node=NODE, gpu_ids=(f"GPU-{NODE}-3",), gpu_indexes=(3,)),
    )
    cluster.placed = both
    cluster.launch(order(*script(text), nodes=2, gpus=1))
    assert cluster.listener.ended().exit_code == 0
    first, second = cluster.output().split(), cluster.output(rank=1).split()
    assert first[0] == second[0]
    assert second[1] == "GPU-gpu2-3"
    assert first[1] in {"0", "1", "2", "3"}
    assert len(cluster.claims()) == 1
    cluster.engine.forget(["j-1.1"])


def test_a_gpu_that_a_claim_of_others_holds_is_taken_and_named(
    cluster: DeviceHarness, device_cluster: KubernetesCluster
) -> None:
    access, driver = device_cluster.access, "gpu.nvidia.com"
    condition = f'device.attributes["{driver}"].uuid == "GPU-gpu2-2"'
    access.add_claiming_pod("stranger", device_class=driver, condition=condition)
    try:
        wait_until(lambda: cluster.node().taken.gpus == ("GPU-gpu2-2",), "their GPU is taken")
        # A plan that was made before.
        cluster.launch(on((2,), SHOW))
        wait_until(
            lambda: (status := cluster.status()) is not None and "GPU-gpu2-2: Resource" in status.message, "its reason"
        )
        end = cluster.listener.ended()
        assert end.reason is EndReason.PREEMPTED
        assert "GPU-gpu2-2: ResourceClaim default/stranger-gpus" in end.message
        assert "has it; 0/2 nodes are available" in end.message
        assert "cannot allocate all claims" in end.message
    finally:
        access.delete_pod("stranger")
    cluster.engine.forget(["j-1.1"])
    wait_until(lambda: cluster.node().taken.gpus == (), "their GPU is free")


def test_the_words_of_a_driver_that_prepares_no_device_are_shown(
    cluster: DeviceHarness, device_cluster: KubernetesCluster
) -> None:
    refusal = device_cluster.node(NODE).devices / "refusal"
    refusal.write_text("the GPU fell off the bus")
    try:
        cluster.launch(on((1,), SHOW))
        wait_until(
            lambda: (status := cluster.status()) is not None and "the GPU fell off the bus" in status.message,
            "the words of the driver",
        )
        assert "FailedPrepareDynamicResources" in str(cluster.status())
    finally:
        refusal.unlink()
    assert cluster.listener.ended().exit_code == 0
    assert cluster.output() == "GPU-gpu2-1 void 0\n"
    cluster.engine.forget(["j-1.1"])


def test_devices_that_change_are_seen(cluster: DeviceHarness, device_cluster: KubernetesCluster) -> None:
    node = device_cluster.node(NODE)
    all_devices = [gpu_device(NODE, index) for index in range(4)]
    assert len(cluster.node().gpus) == 4
    mig = gpu_device(NODE, 3, type={"string": "mig"}, uuid={"string": "MIG-3-1"}, profile={"string": "1g.10gb"})
    try:
        node.publish([*all_devices[:3], mig | {"name": "gpu-3-mig-1", "capacity": {"memory": {"value": "10Gi"}}}])
        wait_until(lambda: "MIG-3-1" in {gpu.id for gpu in cluster.node().gpus}, "the part of a GPU")
        seen = cluster.node()
        # It is remembered: its driver may be just starting.
        assert seen.taken.gpus == ("GPU-gpu2-3",)
        (part,) = [gpu for gpu in seen.gpus if gpu.id == "MIG-3-1"]
        assert (part.model, part.memory_bytes) == ("A100-SXM4-80GB-MIG-1g.10gb", 10 << 30)
        cluster.placed = (Instance(rank=0, node=NODE, gpu_ids=("MIG-3-1",), gpu_indexes=(4,)),)
        cluster.launch(order(*script(SHOW), gpus=1))
        assert cluster.listener.ended().exit_code == 0
        assert cluster.output() == "MIG-3-1 void\n"
    finally:
        node.publish(all_devices)
    wait_until(lambda: "GPU-gpu2-3" not in cluster.node().taken.gpus, "the whole GPU is back")
    cluster.engine.forget(["j-1.1"])


def test_a_job_goes_on_while_driver_and_kubelet_start_again(
    cluster: DeviceHarness, device_cluster: KubernetesCluster
) -> None:
    cluster.launch(on((0,), f"{SHOW}; trap 'exit 7' TERM; {STAY}"))
    cluster.listener.running()
    node = device_cluster.node(NODE)
    for daemon in ("gpu-driver", "kubelet"):
        node.kill_daemon(daemon)
        node.start_daemon(daemon)
    wait_until(lambda: len(device_cluster.published()) == 4, "the devices are published")
    wait_until(lambda: cluster.node().taken.gpus == (), "all GPUs can be used")
    cluster.launch(on((1,), SHOW, "j-2.1"))
    assert cluster.listener.ended("j-2.1").exit_code == 0
    cluster.engine.stop("j-1.1", 5.0)
    assert cluster.listener.ended().exit_code == 7
    cluster.engine.forget(["j-1.1", "j-2.1"])


def test_a_restored_server_takes_its_pods_up_again_and_leaves_no_claim(cluster: DeviceHarness) -> None:
    cluster.launch(on((2,), STAY))
    cluster.listener.running()
    cluster.stop_server()
    engine_id = (cluster.root / "engine-id").read_text()
    shutil.rmtree(cluster.root)
    cluster.root.mkdir()
    (cluster.root / "engine-id").write_text(engine_id)
    cluster.start()
    assert cluster.status() is not None
    assert cluster.node().taken.gpus == ()
    cluster.engine.stop("j-1.1", 1.0)
    cluster.listener.ended()
    cluster.engine.forget(["j-1.1"])
    wait_until(lambda: not cluster.own_pods() and not cluster.claims(), "nothing stays")


def test_leftovers_of_a_server_that_is_gone_are_found_and_removed(cluster: DeviceHarness) -> None:
    cluster.launch(on((1,), STAY))
    cluster.listener.running()
    cluster.stop_server()
    installation = cluster.engine.describe()["installation"]
    assert leftovers.installations(cluster.api, [NAMESPACE])[installation] == {"pods": 1, "resourceclaims": 1}
    removed = leftovers.remove(cluster.api, [NAMESPACE], installation)
    assert removed["pods"] == 1
    wait_until(lambda: not cluster.own_pods() and not cluster.claims(), "nothing stays")
    cluster._launched.clear()


def test_the_rights_of_the_roles_are_enough_and_each_is_missed(
    cluster: DeviceHarness, device_cluster: KubernetesCluster
) -> None:
    access = device_cluster.access
    account = f"corral-{uuid4().hex[:6]}"
    documents = roles([NAMESPACE], f"system:serviceaccount:{NAMESPACE}:{account}", name=account)
    metadata = {"name": account, "namespace": NAMESPACE}
    access.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, *documents)
    cluster.stop_server()
    cluster.token = access.kubectl("create", "token", account, "-n", NAMESPACE).strip()
    cluster.start()
    try:
        found = {one.check: one for one in checked(cluster)}
        assert {check: str(one.verdict) for check, one in found.items()} == dict.fromkeys(found, "OK")
        assert found["GPUs"].detail == "8 A100-SXM4-80GB"
        cluster.launch(on((3,), SHOW))
        assert cluster.listener.ended().exit_code == 0
        cluster.engine.forget(["j-1.1"])
        wait_until(lambda: not cluster.own_pods() and not cluster.claims(), "nothing stays")

        lacking = {
            one["kind"]: {**one, "rules": [rule for rule in one["rules"] if rule["apiGroups"] != ["resource.k8s.io"]]}
            for one in documents
            if "rules" in one
        }
        replaced(device_cluster, lacking["Role"])
        wait_until(lambda: missing(cluster) == {"create", "get", "delete"}, "the doctor names the rights of the role")
        with pytest.raises(EngineUnavailable, match=r"cannot create resource .*resourceclaims"):
            cluster.engine.launch(cluster.on_nodes(on((3,), SHOW, "j-2.1")))
        cluster.engine.stop("j-2.1", 0.0)
        cluster.engine.forget(["j-2.1"])
        # Without a view of them the GPUs of the driver are no part of the cluster; the others are.
        replaced(device_cluster, lacking["ClusterRole"])
        wait_until(lambda: rights_detail(cluster) == "all that corral uses", "no device is seen")
        assert {one.detail for one in checked(cluster) if one.check == "GPUs"} == {"4 A100-SXM4-80GB"}
    finally:
        cluster.token = ""
        for kind in ("clusterrole", "clusterrolebinding"):
            access.kubectl("delete", kind, account)
        for kind in ("role", "rolebinding"):
            access.kubectl("delete", kind, account, "-n", NAMESPACE)


def replaced(node_cluster: KubernetesCluster, body: Json) -> None:
    node_cluster.access.kubectl("replace", "-f", "-", given=json.dumps(body))


def checked(cluster: DeviceHarness) -> list[cluster_checks.ClusterFinding]:
    api = ApiClient(with_token(cluster.kubeconfig, cluster.token))
    rules = PodRules(namespace=NAMESPACE, default_image=cluster.image)
    found = list(cluster_checks.check_cluster(api, rules))
    api.close()
    return found


def rights_detail(cluster: DeviceHarness) -> str:
    return next(one.detail for one in checked(cluster) if one.check == "Rights")


def missing(cluster: DeviceHarness) -> set[str]:
    """The verbs of namespaced rights on claims that the doctor misses."""
    detail = rights_detail(cluster)
    return {
        right.verb for right in RIGHTS if right.is_for_devices and not right.is_for_cluster and f"{right} (" in detail
    }
