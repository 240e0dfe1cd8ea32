"""Exporters of GPU readings on the nodes, found by the labels of their pods in one namespace that the operator names.

In any other namespace a user could make a pod that looks like an exporter, and so report that GPUs fail.
"""

from __future__ import annotations

import ipaddress
import threading

from corral.control.ports import NodeExporter
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import is_leaving, labels_of, name_of, phase

#: As NVIDIA's charts, its GPU operator and corral's own chart label them.
_LABELS = (
    ("app.kubernetes.io/name", "dcgm-exporter"),
    ("app", "nvidia-dcgm-exporter"),
    ("app.kubernetes.io/component", "exporter"),
)
_PORT = 9400
_PORT_NAME = "metrics"


class ExporterPods:
    """Safe for several threads. Without a namespace none is found."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._lock = threading.Lock()
        self._found: dict[str, NodeExporter] = {}

    def clear(self) -> None:
        with self._lock:
            self._found.clear()

    def put(self, pod: Json) -> None:
        if pod["metadata"].get("namespace") != self._namespace:
            return
        exporter = None if is_leaving(pod) else _exporter(pod)
        with self._lock:
            if exporter is None:
                self._found.pop(name_of(pod), None)
            else:
                self._found[name_of(pod)] = exporter

    def remove(self, pod: Json) -> None:
        if pod["metadata"].get("namespace") == self._namespace:
            with self._lock:
                self._found.pop(name_of(pod), None)

    def found(self) -> list[NodeExporter]:
        with self._lock:
            return sorted(self._found.values(), key=lambda exporter: (exporter.node, exporter.address))


def _exporter(pod: Json) -> NodeExporter | None:
    labels, status = labels_of(pod), pod.get("status") or {}
    address, node = status.get("podIP"), pod["spec"].get("nodeName")
    if (
        phase(pod) != "Running"
        or not address
        or not node
        or not any(labels.get(key) == value for key, value in _LABELS)
    ):
        return None
    ports = [port for container in pod["spec"].get("containers") or () for port in container.get("ports") or ()]
    number = next((port["containerPort"] for port in ports if port.get("name") == _PORT_NAME), _PORT)
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    return NodeExporter(node=node, address=f"{host}:{number}")
