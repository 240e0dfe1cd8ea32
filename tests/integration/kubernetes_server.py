"""A corral server on a real Kubernetes, whose jobs see directories of the test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from corral.engines.kubernetes import leftovers
from corral.engines.kubernetes.api.client import ApiClient
from corral.engines.kubernetes.api.kubeconfig import read_kubeconfig
from tests.contract.kubernetes_harness import NAMESPACE, make_claim
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.access import KubernetesAccess


def server_on(
    access: KubernetesAccess, place: Path, *, settings: str = "", more_mounts: Sequence[str] = (), **options: Any
) -> CorralServer:
    """A server with its home in `place`; jobs see `place/shared`, too. `options` are further settings of
    the cluster.
    """
    place.mkdir(exist_ok=True)
    (place / "shared").mkdir()
    (place / "shared").chmod(0o777)
    api = ApiClient(read_kubeconfig([access.kubeconfig]))
    claim = make_claim(api, place)
    api.close()
    home = place / "home"
    home.mkdir()
    section = {
        "kubeconfig": str(access.kubeconfig),
        "namespace": NAMESPACE,
        "default_image": access.image,
        "node_selector": {"hollow": "false"},
        "home": f"{claim}/home:{home}",
        "mounts": [f"{claim}/shared:{place}/shared", *more_mounts],
        **options,
    }
    clusters = [{"name": "pods", "engine": "kubernetes", "kubernetes": section}]
    # JSON is YAML, too.
    (home / "corral.yaml").write_text(f"cluster: {json.dumps(clusters)}\n{settings}")
    return CorralServer(home, "--config", str(home / "corral.yaml"))


def left_behind(access: KubernetesAccess, server: CorralServer) -> dict[str, list[str]]:
    """The server's objects in Kubernetes: pods with their finalizers, services and secrets."""
    installation = _installation(server)
    return {
        kind: [
            f"{one['metadata']['name']} {one['metadata'].get('finalizers', [])}"
            for one in access.get(f"/api/v1/namespaces/{NAMESPACE}/{kind}")["items"]
            if one["metadata"].get("labels", {}).get("corral/installation") == installation
        ]
        for kind in ("pods", "services", "secrets")
    }


def claims_left(access: KubernetesAccess, server: CorralServer) -> list[str]:
    """The server's ResourceClaims."""
    selector = f"corral/installation={_installation(server)}"
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims?labelSelector={quote(selector)}"
    return [one["metadata"]["name"] for one in access.get(path)["items"]]


def pods_of(access: KubernetesAccess, server: CorralServer, job: str) -> list[dict[str, Any]]:
    selector = f"corral/job={job},corral/installation={_installation(server)}"
    found: list[dict[str, Any]] = access.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")["items"]
    return found


def clean_up(access: KubernetesAccess, server: CorralServer) -> None:
    """Cleans up after a failed test: its pods would take the GPUs of the next one."""
    api = ApiClient(read_kubeconfig([access.kubeconfig]))
    leftovers.remove(api, [NAMESPACE], _installation(server))
    api.close()


def remove_all(access: KubernetesAccess, server: CorralServer) -> None:
    """Cleans up like `clean_up`, for a server with several clusters of Kubernetes."""
    api = ApiClient(read_kubeconfig([access.kubeconfig]))
    for installation in _installations(server):
        leftovers.remove(api, [NAMESPACE], installation)
    api.close()


def clusters_left(access: KubernetesAccess, server: CorralServer) -> list[str]:
    """The pods that a server with several clusters of Kubernetes has there."""
    selector = f"corral/installation in ({','.join(_installations(server))})"
    found = access.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={quote(selector)}")["items"]
    return [one["metadata"]["name"] for one in found]


def _installations(server: CorralServer) -> list[str]:
    return [path.read_text().strip() for path in server.home.rglob("engine-id")]


def _installation(server: CorralServer) -> str:
    (found,) = _installations(server)
    return found
