"""Converts Kubernetes' nodes to corral's, with the GPUs, CPUs and memory that other pods hold on them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from corral.core.model import Gpu, Node, NodeState, Taken
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import (
    CPU,
    MEMORY,
    PODS,
    amounts,
    annotations_of,
    conditions,
    labels_of,
    name_of,
)
from corral.engines.kubernetes.cluster.capacities import MISSING, without_missing
from corral.engines.kubernetes.devices.node_devices import NodeDevices, counted_id
from corral.engines.kubernetes.devices.resource_slices import DEVICE_CLASSES

MIB = 1 << 20
#: Resources that are GPUs, if the configuration names no others. A pattern ends with *.
GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "amd.com/gpu")
PRODUCT_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"
#: How many jobs share a device, and the end of the models of shares. The device plugin names the resource so, if it is
#: configured to.
_REPLICAS_LABEL = "nvidia.com/gpu.replicas"
_STRATEGY_LABEL = "nvidia.com/gpu.sharing-strategy"
_SHARED_MODEL = "-SHARED"
_SHARED_RESOURCE = ".shared"
#: corral's own drain, with its reason.
WITHHELD = "corral/withheld"
#: Labels by which corral knows where a node stands.
_PLACES = {"topology.kubernetes.io/zone": "zone", "topology.kubernetes.io/region": "region",
           "topology.kubernetes.io/rack": "rack"}  # fmt: skip
#: Hundreds of labels about CPU features, which no job asks for.
_NOISE = ("feature.node.kubernetes.io/", "beta.kubernetes.io/")
_PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
#: Kubernetes sets these by itself: the conditions say the same with a reason.
_OWN_TAINTS = "node.kubernetes.io/"
_TOLERATION = re.compile(
    r"(?P<key>[A-Za-z0-9./_-]+)(=(?P<value>[A-Za-z0-9._-]*))?(:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute))?"
)
_MIG = re.compile(r"nvidia\.com/mig-(.+)")
_NO_DEVICES = NodeDevices()


@dataclass(frozen=True, kw_only=True, slots=True)
class Toleration:
    """A taint that pods of corral tolerate. Without a value or an effect every one is tolerated."""

    key: str
    value: str = ""
    effect: str = ""

    def covers(self, taint: Mapping[str, str]) -> bool:
        return (
            self.key == taint.get("key")
            and self.value in ("", taint.get("value", ""))
            and self.effect in ("", taint.get("effect", ""))
        )


def parse_toleration(text: str) -> Toleration:
    """KEY, KEY=VALUE, or either with :EFFECT, as kubectl writes taints. Raises ValueError."""
    match = _TOLERATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not of the form dedicated=ml:NoSchedule")
    return Toleration(key=match["key"], value=match["value"] or "", effect=match["effect"] or "")


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetRules:
    """The nodes that corral may use, the resources and devices that are GPUs, and the names of their models."""

    gpu_resources: tuple[str, ...] = GPU_RESOURCES
    #: the drivers of Dynamic Resource Allocation whose devices are GPUs, with the DeviceClass to ask for
    device_classes: Mapping[str, str] = field(default_factory=lambda: DEVICE_CLASSES)
    #: labels that a node must have; empty means all nodes
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    #: the model of a product label, if it is not the label itself
    models: Mapping[str, str] = field(default_factory=dict)

    def is_gpu(self, resource: str) -> bool:
        return any(
            resource.startswith(name[:-1]) if name.endswith("*") else resource == name for name in self.gpu_resources
        )


def nodes_seen(
    nodes: Iterable[Json],
    others: Mapping[str, Counter[str]],
    named: Mapping[str, frozenset[str]],
    lost: Container[str],
    rules: FleetRules,
    own_pods: Mapping[str, int] = MappingProxyType({}),
    devices: Mapping[str, NodeDevices] = MappingProxyType({}),
) -> tuple[Node, ...]:
    """`named` are the GPUs that plans of corral use on each node, so that they are not counted as held by other pods.
    A node with a plan is included even if it is not selected any more: otherwise it would count as lost. `own_pods` is
    how many pods of live attempts are on each node, or will be; `devices` are the GPUs that drivers publish."""
    wanted = (node for node in nodes if is_selected(node, rules) or name_of(node) in named)
    return tuple(
        replace(built, state=NodeState.DOWN) if built.id in lost else built
        for built in (
            _node(
                node,
                others.get(name_of(node), Counter()),
                named.get(name_of(node), frozenset()),
                rules,
                own_pods.get(name_of(node), 0),
                devices.get(name_of(node), _NO_DEVICES),
            )
            for node in sorted(wanted, key=name_of)
        )
    )


def is_selected(node: Json, rules: FleetRules) -> bool:
    labels = labels_of(node)
    if any(labels.get(name) != value for name, value in rules.selector.items()):
        return False
    return not any(taint["key"] in _CONTROL_PLANE for taint in _untolerated(node, rules))


def why_withheld(node: Json, rules: FleetRules) -> str:
    """ "" for a node on which Kubernetes would start corral's pods."""
    found = conditions(node)
    ready = found.get("Ready", {})
    if ready.get("status") != "True":
        return f"not ready: {ready.get('message') or 'its kubelet has reported nothing'}"
    if node["spec"].get("unschedulable"):
        return annotations_of(node).get(WITHHELD) or "cordoned in Kubernetes"
    if pressed := [kind for kind in _PRESSURE if found.get(kind, {}).get("status") == "True"]:
        return f"{pressed[0]}: {found[pressed[0]].get('message', '')}"
    if missing := node["status"].get(MISSING):
        return f"its kubelet reports no {', '.join(missing)}: the device plugin is away"
    taints = [taint for taint in _untolerated(node, rules) if not taint["key"].startswith(_OWN_TAINTS)]
    if taints:
        return f"tainted in Kubernetes: {', '.join(map(_taint_text, taints))}"
    return "" if is_selected(node, rules) else "not selected for corral any more"


def _why_full(pods: int, limit: int | None) -> str:
    return "" if limit is None or pods < limit else f"it has {pods} pods, and its kubelet runs {limit} at most"


def gpus_of(node: Json, rules: FleetRules) -> list[tuple[str, Gpu]]:
    """Each GPU with its resource. The devices of a resource are interchangeable for Kubernetes: an id stands for one of
    them. Devices that are unhealthy now are listed, too, so that a job on the others keeps its GPUs."""
    capacity = amounts(node["status"].get("capacity"))
    resources = sorted(name for name in capacity if capacity[name] > 0 and rules.is_gpu(name))
    found: list[tuple[str, Gpu]] = []
    for resource in resources:
        model, memory = _model(node, resource, rules), _memory(node, resource)
        for _ in range(capacity[resource]):
            index = len(found)
            gpu = Gpu(id=counted_id(name_of(node), index), index=index, model=model, memory_bytes=memory)
            found.append((resource, gpu))
    return found


def gpus_asked(node: Json | None, gpu_ids: Sequence[str], rules: FleetRules) -> dict[str, int]:
    """How many of which resource to request for the GPUs of a plan."""
    resources = {gpu.id: resource for resource, gpu in gpus_of(node, rules)} if node is not None else {}
    default = next((name for name in rules.gpu_resources if not name.endswith("*")), "nvidia.com/gpu")
    return dict(Counter(resources.get(gpu, default) for gpu in gpu_ids))


def _node(
    node: Json, others: Counter[str], named: frozenset[str], rules: FleetRules, own_pods: int, devices: NodeDevices
) -> Node:
    if devices.devices:
        # A driver has taken the place of a device plugin that is away.
        node = without_missing(node)
    gpus = gpus_of(node, rules)
    # A device plugin and a driver on the same node would have the same GPUs.
    published = NodeDevices() if gpus else devices
    capacity, free = amounts(node["status"].get("capacity")), amounts(node["status"].get("allocatable"))
    # What the node keeps for itself or has lost, and what others hold.
    taken = Counter({name: capacity[name] - free[name] + max(0, others[name]) for name in capacity})
    why = why_withheld(node, rules) or _why_full(own_pods + others[PODS], free.get(PODS))
    state = NodeState.CORDONED if why else NodeState.READY
    return Node(
        id=name_of(node),
        state=state,
        cpu_milli=free[CPU],
        memory_bytes=free[MEMORY],
        gpus=(
            *(gpu for _, gpu in gpus),
            *(device.gpu(index) for index, device in enumerate(published.devices)),
        ),
        labels=_labels(node),
        reason=why,
        taken=Taken(
            gpus=tuple(sorted((*_taken_gpus(gpus, taken, named), *published.taken))),
            cpu_milli=max(0, others[CPU]),
            memory_bytes=max(0, others[MEMORY]),
        ),
    )


def _taken_gpus(gpus: Sequence[tuple[str, Gpu]], taken: Mapping[str, int], named: frozenset[str]) -> tuple[str, ...]:
    """The GPUs of each resource that others hold: first those that no plan of corral names. If others hold more than
    plans leave, a plan waits in Kubernetes for them.
    """
    left = Counter(taken)
    found = []
    for resource, gpu in sorted(gpus, key=lambda entry: (entry[1].id in named, -entry[1].index)):
        if left[resource] > 0:
            left[resource] -= 1
            found.append(gpu.id)
    return tuple(found)


def _untolerated(node: Json, rules: FleetRules) -> list[Mapping[str, str]]:
    taints = node["spec"].get("taints") or ()
    hard = [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return [taint for taint in hard if not any(toleration.covers(taint) for toleration in rules.tolerations)]


def _taint_text(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect')}"


def _model(node: Json, resource: str, rules: FleetRules) -> str:
    labels = labels_of(node)
    product = next((labels[name] for name in PRODUCT_LABELS if labels.get(name)), "")
    known = rules.models.get(product) or rules.models.get(resource)
    model = known or product.removeprefix("NVIDIA-") or "GPU"
    match = _MIG.fullmatch(resource.removesuffix(_SHARED_RESOURCE))
    if match:
        model = f"{model.partition('-MIG-')[0]}-MIG-{match[1]}"
    return f"{model.removesuffix(_SHARED_MODEL)}{_SHARED_MODEL}" if _sharers(node, resource) > 1 else model


def _memory(node: Json, resource: str) -> int:
    """The memory of a GPU resource; for a share, its part of the device's memory."""
    whole = resource.removesuffix(_SHARED_RESOURCE)
    text = labels_of(node).get(GPU_MEMORY_LABEL if not _MIG.fullmatch(whole) else f"{whole}.memory", "")
    return int(text) * MIB // _sharers(node, resource) if text.isdigit() else 0


def _sharers(node: Json, resource: str) -> int:
    """How many jobs may have each device of the resource at a time, by time-slicing or MPS."""
    labels = labels_of(node)
    whole = resource.removesuffix(_SHARED_RESOURCE)
    label = f"{whole}.replicas" if _MIG.fullmatch(whole) else _REPLICAS_LABEL
    count = int(labels[label]) if labels.get(label, "").isdigit() else 1
    is_shared = resource != whole or labels.get(_STRATEGY_LABEL, "none") != "none"
    return max(2, count) if is_shared else 1


def _labels(node: Json) -> tuple[tuple[str, str], ...]:
    own = {name: value for name, value in labels_of(node).items() if not name.startswith(_NOISE)}
    return tuple(sorted({**{_PLACES[name]: own[name] for name in own if name in _PLACES}, **own}.items()))
