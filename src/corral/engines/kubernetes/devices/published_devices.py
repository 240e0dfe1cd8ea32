"""The ResourceSlices of GPU drivers as the watch reports them, by node; each change costs what it changes.

A driver that starts again may publish nothing for a while, and a kubelet that starts removes the slices of its node.
Without a memory, corral would take the node for one without GPUs: it would refuse jobs that need them for good, and
change pools. The memory is a file, because a server may start at the same time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from corral.engines.attempts.json_files import read_json, write_json
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import name_of
from corral.engines.kubernetes.cluster.capacities import AWAY_SECONDS
from corral.engines.kubernetes.devices.resource_slices import Device, NodeSlices, devices_of, is_of_gpus

_AWAY = "its driver does not publish it now"
_NONE = NodeSlices()


class PublishedDevices:
    """Implements `Listener`. Safe for several threads. `changed` is called after each change."""

    def __init__(
        self, path: Path, classes: Mapping[str, str], models: Mapping[str, str], changed: Callable[[], None]
    ) -> None:
        self._path = str(path)
        self._classes = classes
        self._models = models
        self._changed = changed
        self._lock = threading.Lock()
        self._slices: dict[str, dict[str, Json]] = {}
        self._nodes: dict[str, NodeSlices] = {}
        known: dict[str, list[dict[str, Any]]] = read_json(self._path) or {}
        self._known = {node: {body["gpu_id"]: Device(**body) for body in devices} for node, devices in known.items()}
        #: since when a device is missing, by the monotonic clock
        self._away_since: dict[tuple[str, str], float] = {}
        self.trouble = "not asked yet"

    def replace(self, items: Sequence[Json]) -> None:
        with self._lock:
            self._slices = {}
            for item in items:
                self._keep(item)
            self._update(self._slices.keys() | self._nodes.keys() | self._known.keys())
        self.trouble = ""
        self._changed()

    def put(self, item: Json) -> None:
        if is_of_gpus(item, self._classes):
            with self._lock:
                self._keep(item)
                self._update([item["spec"]["nodeName"]])
            self._changed()

    def remove(self, item: Json) -> None:
        if is_of_gpus(item, self._classes):
            with self._lock:
                self._slices.get(item["spec"]["nodeName"], {}).pop(name_of(item), None)
                self._update([item["spec"]["nodeName"]])
            self._changed()

    def failed(self, error: Exception) -> None:
        self.trouble = str(error)

    def nodes(self) -> dict[str, NodeSlices]:
        """The devices of each node that has any, with those that it had until a short time ago."""
        with self._lock:
            self._forget_old()
            return dict(self._nodes)

    def of(self, node: str) -> NodeSlices:
        with self._lock:
            self._forget_old()
            return self._nodes.get(node, _NONE)

    # ------------------------------------------------------------------------------------ inside

    def _forget_old(self) -> None:
        long_ago = time.monotonic() - AWAY_SECONDS
        self._update({node for (node, _), since in self._away_since.items() if since <= long_ago})

    def _keep(self, item: Json) -> None:
        if is_of_gpus(item, self._classes):
            lean = {"metadata": {"name": name_of(item)}, "spec": item["spec"]}
            self._slices.setdefault(item["spec"]["nodeName"], {})[name_of(item)] = lean

    def _update(self, nodes: Iterable[str]) -> None:
        changed = [node for node in nodes if self._update_node(node)]
        if changed:
            write_json(self._path, {node: [*map(asdict, known.values())] for node, known in self._known.items()})

    def _update_node(self, node: str) -> bool:
        """Whether a device is new there, or is forgotten."""
        found = devices_of(node, self._slices.get(node, {}).values(), self._classes, self._models)
        there = {device.gpu_id: device for device in found.devices}
        now = time.monotonic()
        for gpu_id, device in self._known.get(node, {}).items():
            if gpu_id in there:
                self._away_since.pop((node, gpu_id), None)
            elif now - self._away_since.setdefault((node, gpu_id), now) < AWAY_SECONDS:
                there[gpu_id] = replace(device, trouble=_AWAY)
            else:
                del self._away_since[node, gpu_id]
        known = self._known.pop(node, {})
        self._nodes.pop(node, None)
        if there:
            # A device keeps its place, so that its number stays the same while another one is away.
            order = [*known, *(gpu_id for gpu_id in there if gpu_id not in known)]
            self._known[node] = {gpu_id: there[gpu_id] for gpu_id in order if gpu_id in there}
            self._nodes[node] = replace(found, devices=tuple(self._known[node].values()))
        elif found.unnamed:
            self._nodes[node] = found
        return known.keys() != there.keys()
