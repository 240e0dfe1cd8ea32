"""The Kubernetes engine under contract, on a real Kubernetes whose nodes see this machine's files.

Pods run in a namespace that enforces the `restricted` Pod Security Standard, and mount the tests' own directories by a
claim, at the same paths.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from corral.control.ports import Instance, LaunchOrder
from corral.engines.kubernetes.api.client import ApiClient, ApiConflict, ApiNotFound
from corral.engines.kubernetes.api.kubeconfig import read_kubeconfig
from corral.engines.kubernetes.attempts.pod_rules import ClaimMount, PodRules
from corral.engines.kubernetes.attempts.pods import pod_name
from corral.engines.kubernetes.engine import KubernetesEngine
from tests.contract.engine_harness import EngineHarness, wait_until
from tests.servers.kubernetes.access import KubernetesAccess

NAMESPACE = "corral-contract"
Json = dict[str, Any]


class KubernetesHarness(EngineHarness):
    name = "kubernetes"
    engine: KubernetesEngine
    master_addr = ""
    rules: Mapping[str, Any] = {}

    def __init__(self, root: Path, access: KubernetesAccess) -> None:
        super().__init__()
        self.root = root
        self.kubeconfig = access.kubeconfig
        self.image = access.image
        root.mkdir(parents=True, exist_ok=True)
        # Pods have another account than the tests.
        for directory in (root, root.parent):
            directory.chmod(0o777)
        self.api = ApiClient(read_kubeconfig([access.kubeconfig]))
        self.nodes = real_nodes(self.api)
        self.shared = root.parent.parent
        self.shared.chmod(0o711)
        self.claim = make_claim(self.api, self.shared)
        self.start()

    def new_engine(self) -> KubernetesEngine:
        rules = PodRules(
            namespace=NAMESPACE,
            default_image=self.image,
            mounts=(ClaimMount(claim=self.claim, path=str(self.shared)),),
            log_limit_bytes=self.log_limit_bytes,
        )
        return KubernetesEngine(
            root=self.root,
            api=ApiClient(read_kubeconfig([self.kubeconfig])),
            rules=replace(rules, **self.rules),
            look_seconds=0.2,
        )

    def node_name(self, rank: int) -> str:
        return self.nodes[rank % len(self.nodes)]

    def launch(self, launch_order: LaunchOrder) -> str:
        return super().launch(self.on_nodes(launch_order))

    def on_nodes(self, launch_order: LaunchOrder) -> LaunchOrder:
        """The order with names of nodes that are there."""
        instances = tuple(self._placed(one) for one in launch_order.instances)
        return replace(launch_order, instances=instances)

    def _placed(self, instance: Instance) -> Instance:
        node = self.node_name(instance.rank)
        return replace(instance, node=node, gpu_ids=tuple(f"{node}-gpu{index}" for index in instance.gpu_indexes))

    def crash_helper(self) -> None:
        """Does nothing: Kubernetes starts attempts."""

    def pod(self, attempt_id: str = "j-1.1", rank: int = 0) -> Json:
        return self.api.get(self.path(attempt_id, rank))

    def path(self, attempt_id: str = "j-1.1", rank: int = 0) -> str:
        name = pod_name(self.engine.describe()["installation"], attempt_id, rank)
        return f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"

    def own_pods(self) -> list[Json]:
        """All that this engine has left in Kubernetes."""
        selector = f"corral/installation={self.engine.describe()['installation']}"
        found: list[Json] = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods", {"labelSelector": selector})["items"]
        return found

    def is_alive(self, attempt_id: str = "j-1.1", rank: int = 0) -> bool:
        statuses = self.pod(attempt_id, rank)["status"].get("containerStatuses") or [{}]
        return "running" in (statuses[0].get("state") or {})

    def process_exists(self, pid: int) -> bool:
        """A process of a job, by its number in its own container."""
        return any(_is_numbered(place, pid) and _is_of_corral(place) for place in Path("/proc").glob("[0-9]*"))

    def bytes_kept(self) -> int:
        return sum(path.stat().st_size for path in self.root.rglob("log.*"))

    def clean_up(self) -> None:
        super().clean_up()
        for pod in self.own_pods():
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}"
            with contextlib.suppress(ApiNotFound):
                self.api.delete(path, {"gracePeriodSeconds": 0})
                self.api.patch(path, {"metadata": {"finalizers": None}})
        self.api.close()


def real_nodes(api: ApiClient) -> list[str]:
    """Nodes that run containers."""
    found = api.get("/api/v1/nodes", {"labelSelector": "hollow!=true"})["items"]
    return sorted(node["metadata"]["name"] for node in found)


def _is_numbered(place: Path, pid: int) -> bool:
    with contextlib.suppress(OSError):
        for line in (place / "status").read_text().splitlines():
            if line.startswith("State:") and "Z" in line:
                return False
            if line.startswith("NSpid:"):
                numbers = line.split()[1:]
                return len(numbers) > 1 and int(numbers[-1]) == pid
    return False


def _is_of_corral(place: Path) -> bool:
    try:
        return b"CORRAL_ATTEMPT_ID=" in (place / "environ").read_bytes()
    except OSError:
        return False


def make_claim(api: ApiClient, directory: Path) -> str:
    """A claim of this machine's directory, which all nodes see."""
    name = f"tests-{zlib.crc32(str(directory).encode()):08x}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    _make(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    size = {"storage": "1Gi"}
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": size,
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": str(directory)},
            "storageClassName": "",
            "claimRef": {"namespace": NAMESPACE, "name": name},
        },
    }
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": size},
            "storageClassName": "",
            "volumeName": name,
        },
    }
    _make(api, "/api/v1/persistentvolumes", volume)
    claims = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    _make(api, claims, claim)
    wait_until(lambda: api.get(f"{claims}/{name}")["status"].get("phase") == "Bound", "the claim")
    return name


def _make(api: ApiClient, path: str, body: Json) -> None:
    with contextlib.suppress(ApiConflict):
        api.create(path, json.loads(json.dumps({"apiVersion": "v1", **body})))
