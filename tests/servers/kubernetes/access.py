"""A Kubernetes cluster as tests use it: through kubectl and a kubeconfig, whatever cluster that is."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.kubernetes.archives import BUSYBOX_IMAGE


@dataclass(kw_only=True)
class KubernetesAccess:
    kubeconfig: Path
    kubectl_program: Path
    image: str = BUSYBOX_IMAGE

    def kubectl(self, *words: str, check: bool = True, given: str | None = None) -> str:
        command = [str(self.kubectl_program), f"--kubeconfig={self.kubeconfig}", *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout

    def get(self, path: str) -> Any:
        """The answer of the API server to this path, such as /api/v1/nodes."""
        return json.loads(self.kubectl("get", "--raw", path))

    def answers(self) -> bool:
        return self.kubectl("get", "--raw", "/readyz", "--request-timeout=5s", check=False) == "ok"

    def create(self, *objects: dict[str, Any]) -> None:
        self.kubectl("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}))

    def add_pod(
        self,
        name: str,
        *,
        gpus: int = 0,
        node: str | None = None,
        namespace: str = "default",
        script: str = "sleep 3600",
    ) -> None:
        """A stranger's: corral knows nothing of it."""
        wanted = {"cpu": "10m", "memory": "16Mi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        container = {
            "name": "main",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", script],
            "resources": {"requests": wanted, "limits": wanted},
        }
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        if node is not None:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        metadata = {"name": name, "namespace": namespace}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def add_claiming_pod(
        self, name: str, *, device_class: str, condition: str = "true", count: int = 1, script: str = "sleep 3600"
    ) -> None:
        """A stranger's, with devices that a driver of Dynamic Resource Allocation publishes; its claim goes with it."""
        exactly = {
            "deviceClassName": device_class,
            "count": count,
            "selectors": [{"cel": {"expression": condition}}],
        }
        container = {
            "name": "main",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", script],
            "resources": {"claims": [{"name": "gpus"}]},
        }
        self.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                    "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": name}],
                },
            },
        )

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        self.kubectl("delete", "pod", name, f"--namespace={namespace}", "--grace-period=0", "--force", "--wait=false")

    def phase(self, name: str, namespace: str = "default") -> str:
        return str(self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["status"]["phase"])
