"""The daemons that corral depends on: the API server, and a kubelet on each node. Nothing here asks Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable

from corral.control.ports import EnginePart, EnginePartKind
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import condition, joined, name_of


def api_server(trouble: str, note: str) -> EnginePart:
    return EnginePart(
        name="kube-apiserver", kind=EnginePartKind.DAEMON, healthy=not trouble, detail=joined((trouble, note))
    )


def kubelets(nodes: Iterable[Json]) -> list[EnginePart]:
    return [_kubelet(node) for node in sorted(nodes, key=name_of)]


def _kubelet(node: Json) -> EnginePart:
    ready = condition(node, "Ready")
    is_healthy = ready.get("status") == "True"
    version = (node["status"].get("nodeInfo") or {}).get("kubeletVersion", "")
    return EnginePart(
        name=f"kubelet {name_of(node)}",
        kind=EnginePartKind.DAEMON,
        node=name_of(node),
        healthy=is_healthy,
        detail=str(version) if is_healthy else str(ready.get("message") or "not ready"),
    )
