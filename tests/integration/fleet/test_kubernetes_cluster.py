"""The Kubernetes of the tests itself: what tests of corral rely on when they use it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.servers.kubernetes.cluster import GPU, KubernetesCluster
from tests.servers.kubernetes.control_plane import DAEMONS
from tests.servers.kubernetes.processes import wait_for

pytest_plugins = ("tests.servers.fixtures",)


def test_nodes_have_their_gpus_cpus_and_labels(kubernetes_cluster: KubernetesCluster) -> None:
    nodes = {node["metadata"]["name"]: node for node in kubernetes_cluster.access.get("/api/v1/nodes")["items"]}

    assert set(nodes) == {"gpu1", "gpu2", "hollow1", "hollow2"}
    for node in nodes.values():
        assert node["status"]["allocatable"][GPU] == "8"
        assert node["status"]["allocatable"]["cpu"] == "16"
        assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.34.")
        assert node["metadata"]["labels"][f"{GPU}.product"] == "NVIDIA-A100-SXM4-80GB"


def test_a_pod_knows_its_gpus_and_reaches_a_pod_of_the_other_node(kubernetes_cluster: KubernetesCluster) -> None:
    access = kubernetes_cluster.access
    server, client = (f"pod-{uuid4().hex[:8]}" for _ in range(2))
    access.add_pod(server, gpus=2, node="gpu1", script="echo $CUDA_VISIBLE_DEVICES >name; httpd -f -p 8000")
    wait_for(lambda: access.phase(server) == "Running", "the first pod")
    address = access.get(f"/api/v1/namespaces/default/pods/{server}")["status"]["podIP"]
    access.add_pod(client, node="gpu2", script=f"until wget -qO- http://{address}:8000/name; do sleep 0.1; done")

    wait_for(lambda: access.phase(client) == "Succeeded", "the second pod")
    indexes = access.kubectl("logs", client).strip().split(",")
    access.delete_pod(server)
    access.delete_pod(client)

    assert len(set(indexes)) == 2
    assert set(indexes) <= {str(index) for index in range(8)}


def test_an_unhealthy_gpu_is_not_allocatable(kubernetes_cluster: KubernetesCluster) -> None:
    def allocatable() -> str:
        return str(kubernetes_cluster.access.get("/api/v1/nodes/gpu1")["status"]["allocatable"][GPU])

    kubernetes_cluster.node("gpu1").unhealthy_gpus.write_text("3 5")
    wait_for(lambda: allocatable() == "6", "two unhealthy GPUs")
    kubernetes_cluster.node("gpu1").unhealthy_gpus.write_text("")

    wait_for(lambda: allocatable() == "8", "all GPUs")


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_daemon_of_the_control_plane_comes_back(kubernetes_cluster: KubernetesCluster, daemon: str) -> None:
    access, name = kubernetes_cluster.access, f"pod-{uuid4().hex[:8]}"

    kubernetes_cluster.kill_daemon(daemon)
    kubernetes_cluster.start_daemon(daemon)
    wait_for(access.answers, "the API server")
    access.add_pod(name, node="gpu1", script="true")

    wait_for(lambda: access.phase(name) == "Succeeded", "a pod of its own")
    access.delete_pod(name)


@pytest.mark.parametrize("daemon", ["kubelet", "containerd"])
def test_a_daemon_of_a_node_comes_back_and_its_pods_go_on(kubernetes_cluster: KubernetesCluster, daemon: str) -> None:
    access, name = kubernetes_cluster.access, f"pod-{uuid4().hex[:8]}"
    node = kubernetes_cluster.node("gpu2")
    access.add_pod(name, node="gpu2", script="until [ -e /tmp/end ]; do sleep 0.1; done")
    wait_for(lambda: access.phase(name) == "Running", "the pod")

    node.kill_daemon(daemon)
    node.start_daemon(daemon)

    def has_ended() -> bool:
        # The pod may end before the command in it has answered.
        access.kubectl("exec", name, "--", "touch", "/tmp/end", check=False)
        return access.phase(name) == "Succeeded"

    wait_for(has_ended, daemon)
    access.delete_pod(name)


def test_a_node_whose_power_is_cut_is_lost_and_comes_back(kubernetes_cluster: KubernetesCluster) -> None:
    access = kubernetes_cluster.access

    def is_ready() -> str:
        conditions = access.get("/api/v1/nodes/gpu2")["status"]["conditions"]
        return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")

    kubernetes_cluster.cut_power("gpu2")
    wait_for(lambda: is_ready() == "Unknown", "the loss of the node")
    kubernetes_cluster.start_node("gpu2")

    wait_for(lambda: is_ready() == "True", "the node")
    wait_for(lambda: access.get("/api/v1/nodes/gpu2")["status"]["allocatable"][GPU] == "8", "its GPUs")
