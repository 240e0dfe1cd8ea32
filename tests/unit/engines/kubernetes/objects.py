"""Nodes and pods as the API server of Kubernetes 1.34 shows them, without what the engine does not read."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def node(name: str = "gpu1", *, gpus: int = 8, allocatable_gpus: int | None = None, **changes: Any) -> Json:
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    free = {**capacity, "cpu": "15800m", "nvidia.com/gpu": str(gpus if allocatable_gpus is None else allocatable_gpus)}
    labels = {
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.memory": "81920",
        "topology.kubernetes.io/zone": "eu-1a",
        **changes.get("labels", {}),
    }
    return {
        "metadata": {"name": name, "labels": labels, "annotations": changes.get("annotations", {})},
        "spec": changes.get("spec", {}),
        "status": {
            "capacity": {**capacity, **changes.get("capacity", {})},
            "allocatable": {**free, **changes.get("capacity", {})},
            "conditions": changes.get("conditions", [condition("Ready", "True")]),
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def pod(
    name: str = "one",
    *,
    node: str | None = "gpu1",
    phase: str = "Running",
    requests: dict[str, str] | None = None,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    state: Json | None = None,
    is_leaving: bool = False,
    conditions: list[Json] | None = None,
    **status: Any,
) -> Json:
    metadata: Json = {"name": name, "namespace": namespace, "labels": labels or {}, "resourceVersion": "7"}
    if is_leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:30Z"
    spec: Json = {"containers": [{"name": "main", "resources": {"requests": requests or {}}}]}
    if node is not None:
        spec["nodeName"] = node
    body: Json = {"phase": phase, "conditions": conditions or [], **status}
    if state is not None:
        body["containerStatuses"] = [{"name": "job", "state": state}]
    return {"metadata": metadata, "spec": spec, "status": body}


def ended(message: str = "", *, code: int = 0, reason: str = "Completed") -> Json:
    """The state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "containerID": "containerd://1",
            "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:20Z",
        }
    }


def gpu_device(name: str, uuid: str = "", **changes: Any) -> Json:
    """A GPU as NVIDIA's driver for Dynamic Resource Allocation publishes it; `attributes` are added."""
    texts = {"type": "gpu", "productName": "NVIDIA A100-SXM4-80GB", **({"uuid": uuid} if uuid else {})}
    attributes = {key: {"string": value} for key, value in texts.items()} | changes.pop("attributes", {})
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}, **changes}


def resource_slice(
    node: str,
    *devices: Json,
    name: str = "",
    driver: str = "gpu.nvidia.com",
    generation: int = 1,
    of: int = 1,
) -> Json:
    pool = {"name": node, "generation": generation, "resourceSliceCount": of}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": list(devices)}
    return {"metadata": {"name": name or f"{node}-{driver}", "resourceVersion": "7"}, "spec": spec}


def resource_claim(name: str, *devices: tuple[str, str], driver: str = "gpu.nvidia.com", **changes: Any) -> Json:
    """Allocated: `devices` as pool and name."""
    results = [{"request": "gpu", "driver": driver, "pool": pool, "device": device} for pool, device in devices]
    metadata = {"name": name, "namespace": "default", "labels": changes.pop("labels", {}), "resourceVersion": "7"}
    for result in results:
        result |= changes
    return {"metadata": metadata, "spec": {}, "status": {"allocation": {"devices": {"results": results}}}}
