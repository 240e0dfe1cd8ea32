"""The GPUs that drivers of Dynamic Resource Allocation publish on the nodes, with those that no plan may use now."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corral.control.ports import EngineUnavailable
from corral.engines.kubernetes.devices.claimed_devices import ClaimedDevices
from corral.engines.kubernetes.devices.published_devices import PublishedDevices
from corral.engines.kubernetes.devices.resource_slices import Device, DeviceKey, NodeSlices

_COUNTED = re.compile(r"gpu\d+")


class DeviceGone(Exception):
    """A GPU of a plan is not published any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDevices:
    """The devices of one node, and the ids of those that no plan may use now."""

    devices: tuple[Device, ...] = ()
    taken: frozenset[str] = frozenset()


class GpuDevices:
    """Safe for several threads. The watches tell `published` and `claimed` of changes; `changed` is called after each
    change of what is published."""

    def __init__(
        self,
        root: Path,
        installation: str,
        classes: Mapping[str, str],
        models: Mapping[str, str],
        changed: Callable[[], None],
    ) -> None:
        self.published = PublishedDevices(root / "devices", classes, models, changed)
        self.claimed = ClaimedDevices(installation)

    def seen(self, leaving: Container[str]) -> dict[str, NodeDevices]:
        """The devices by node. `leaving` are the GPUs of pods that have not ended although their attempts are over."""
        holders = self.claimed.holders()
        return {node: node_devices(slices, holders, leaving) for node, slices in self.published.nodes().items()}

    def of_plan(self, node: str, gpu_ids: Sequence[str]) -> tuple[Device, ...]:
        """The devices of a plan; none for GPUs that a device plugin gives out. Raises DeviceGone, and EngineUnavailable
        while it is unknown what is published."""
        if all(is_counted(node, gpu_id) for gpu_id in gpu_ids):
            return ()
        if trouble := self.published.trouble:
            raise EngineUnavailable(f"Kubernetes: which GPUs drivers publish is unknown: {trouble}")
        known = {device.gpu_id: device for device in self.published.of(node).devices}
        if missing := [gpu_id for gpu_id in gpu_ids if gpu_id not in known]:
            raise DeviceGone(f"no driver publishes {', '.join(missing)} on {node} any more")
        return tuple(known[gpu_id] for gpu_id in gpu_ids)

    def devices(self) -> dict[str, str]:
        """The UUID of each GPU; "" if its driver publishes none."""
        return {
            device.gpu_id: "" if device.gpu_id.startswith(f"{node}-") else device.gpu_id
            for node, slices in self.published.nodes().items()
            for device in slices.devices
        }

    def why_not(self, node: str, gpu_ids: Sequence[str]) -> str:
        """Why Kubernetes cannot give these GPUs to a pod; "" if nothing is known that prevents it."""
        slices, holders = self.published.of(node), self.claimed.holders()
        known = {device.gpu_id: device for device in slices.devices}
        reasons = []
        for gpu_id in gpu_ids:
            if is_counted(node, gpu_id):
                continue
            if (device := known.get(gpu_id)) is None:
                reasons.append(f"no driver publishes {gpu_id} any more")
            elif reason := device.trouble or _held_by(device, slices, holders):
                reasons.append(f"{gpu_id}: {reason}")
        return "; ".join(reasons)


def node_devices(slices: NodeSlices, holders: Mapping[DeviceKey, str], leaving: Container[str]) -> NodeDevices:
    """Pure. A GPU of which another claim has a part is taken as a whole."""
    taken = {
        device.gpu_id
        for device in slices.devices
        if device.trouble or device.gpu_id in leaving or _held_by(device, slices, holders)
    }
    return NodeDevices(devices=slices.devices, taken=frozenset(taken))


def counted_id(node: str, index: int) -> str:
    """The id of a GPU that a device plugin counts."""
    return f"{node}-gpu{index}"


def is_counted(node: str, gpu_id: str) -> bool:
    """Whether it is a GPU that a device plugin counts, for which any device of its resource stands."""
    return gpu_id.startswith(f"{node}-") and _COUNTED.fullmatch(gpu_id.removeprefix(f"{node}-")) is not None


def _held_by(device: Device, slices: NodeSlices, holders: Mapping[DeviceKey, str]) -> str:
    if device.key in holders:
        return f"ResourceClaim {holders[device.key]} has it"
    if counters := slices.counters.get(device.key):
        for key, used in slices.counters.items():
            if key in holders and not counters.isdisjoint(used):
                return f"ResourceClaim {holders[key]} has a part of it"
    return ""
