"""Reads ResourceSlices: the GPUs that drivers of Dynamic Resource Allocation publish on the nodes. Pure.

The GPU of a plan is one device: `Device.selector` is the condition by which a claim asks for this device and no other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.core.model import Gpu
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import amounts, name_of

#: The DeviceClass that claims name for the GPUs of a driver (DRIVER, or DRIVER/TYPE for devices of one type).
DEVICE_CLASSES: Mapping[str, str] = {
    "gpu.nvidia.com": "gpu.nvidia.com",
    "gpu.nvidia.com/mig": "mig.nvidia.com",
    "gpu.amd.com": "gpu.amd.com",
    "gpu.intel.com": "gpu.intel.com",
}
#: Devices for virtual machines, which no container can use.
_NO_GPUS = ("vfio",)
_PRODUCTS = ("productName", "model")
_PROFILES = ("profile", "partitionProfile")
_MEMORY = "memory"
#: Parts of the names of attributes with the place of a device, or its number.
_PLACES = ("pci", "bus", "serial")
#: Effects of a taint that keep new pods away.
_HARD = ("NoSchedule", "NoExecute")

#: Driver, pool and name of a device, as slices and claims have them.
DeviceKey = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """A GPU, or a part of one, that a driver has published for a node."""

    driver: str
    pool: str
    name: str
    gpu_id: str
    model: str
    memory_bytes: int
    device_class: str
    #: a CEL expression that is true for this device only
    selector: str
    #: why no pod can get it now; "" if one can
    trouble: str = ""

    @property
    def key(self) -> DeviceKey:
        return self.driver, self.pool, self.name

    def gpu(self, index: int) -> Gpu:
        return Gpu(id=self.gpu_id, index=index, model=self.model, memory_bytes=self.memory_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSlices:
    """The devices of one node."""

    devices: tuple[Device, ...] = ()
    #: the counters that each device uses: devices that share one are parts of the same GPU
    counters: Mapping[DeviceKey, frozenset[str]] = field(default_factory=dict)
    #: GPUs that differ from others in no attribute, so that no plan can name one
    unnamed: int = 0


def devices_of(node: str, slices: Iterable[Json], classes: Mapping[str, str], models: Mapping[str, str]) -> NodeSlices:
    """The GPUs in the slices of one node. Those of a pool count if all slices of its newest generation are there: for
    Kubernetes' scheduler, too."""
    devices: list[Device] = []
    counters: dict[DeviceKey, frozenset[str]] = {}
    unnamed = 0
    for (driver, pool), found in sorted(_complete_pools(slices).items()):
        published = [body for slice in found for body in slice["spec"].get("devices") or ()]
        counters |= {(driver, pool, body["name"]): _counters(driver, pool, body) for body in published}
        mine = [body for body in _whole(published) if _class_of(driver, body, classes)]
        names = _selectors(driver, mine)
        unnamed += len(mine) - len(names)
        devices += [
            _device(node, driver, pool, body, names[body["name"]], classes, models)
            for body in sorted(mine, key=lambda body: _natural(body["name"]))
            if body["name"] in names
        ]
    return NodeSlices(devices=tuple(devices), counters=counters, unnamed=unnamed)


def is_of_gpus(slice: Json, classes: Mapping[str, str]) -> bool:
    """Whether its driver is one of GPUs, and its devices belong to one node."""
    driver = slice["spec"].get("driver")
    is_known = any(name.partition("/")[0] == driver for name in classes)
    return is_known and bool(slice["spec"].get("nodeName"))


def _complete_pools(slices: Iterable[Json]) -> dict[tuple[str, str], list[Json]]:
    pools: dict[tuple[str, str], list[Json]] = {}
    for slice in sorted(slices, key=name_of):
        spec = slice["spec"]
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(slice)
    complete = {}
    for pool, found in pools.items():
        newest = max(_generation(slice) for slice in found)
        current = [slice for slice in found if _generation(slice) == newest]
        if len(current) == current[0]["spec"]["pool"].get("resourceSliceCount", 1):
            complete[pool] = current
    return complete


def _generation(slice: Json) -> int:
    return int(slice["spec"]["pool"].get("generation") or 0)


def _counters(driver: str, pool: str, body: Json) -> frozenset[str]:
    return frozenset(f"{driver}/{pool}/{used.get('counterSet')}" for used in body.get("consumesCounters") or ())


def _whole(published: Sequence[Json]) -> Iterator[Json]:
    """The devices without the parts that a driver would cut out of a GPU on demand: the GPU itself is one of them."""
    users = Counter(used.get("counterSet") for body in published for used in body.get("consumesCounters") or ())
    for body in published:
        is_part_of_another = any(users[used.get("counterSet")] > 1 for used in body.get("consumesCounters") or ())
        if not is_part_of_another or not _text(body, *_PROFILES):
            yield body


def _class_of(driver: str, body: Json, classes: Mapping[str, str]) -> str:
    kind = _text(body, "type")
    return "" if kind in _NO_GPUS else classes.get(f"{driver}/{kind}") or classes.get(driver, "")


def _device(
    node: str, driver: str, pool: str, body: Json, selector: str, classes: Mapping[str, str], models: Mapping[str, str]
) -> Device:
    capacity = {name: (value or {}).get("value") for name, value in (body.get("capacity") or {}).items()}
    return Device(
        driver=driver,
        pool=pool,
        name=body["name"],
        gpu_id=_text(body, "uuid") or f"{node}-{driver}-{body['name']}",
        model=_model(body, models),
        memory_bytes=amounts(capacity)[_MEMORY],
        device_class=_class_of(driver, body, classes),
        selector=selector,
        trouble=_trouble(body),
    )


def _model(body: Json, models: Mapping[str, str]) -> str:
    """The same as for GPUs of device plugins, so that a GPU has one model on nodes of both kinds."""
    published = _text(body, *_PRODUCTS)
    product = "-".join(published.split())
    model = models.get(published) or models.get(product) or product.removeprefix("NVIDIA-") or "GPU"
    profile = _text(body, *_PROFILES)
    is_mig = _text(body, "type") == "mig"
    return f"{model}{'-MIG' if is_mig else ''}-{profile}" if profile else model


def _trouble(body: Json) -> str:
    taints = [taint for taint in body.get("taints") or () if taint.get("effect") in _HARD]
    texts = [f"{taint['key']}{'=' if taint.get('value') else ''}{taint.get('value') or ''}" for taint in taints]
    return f"its driver has tainted it: {', '.join(texts)}" if texts else ""


# ------------------------------------------------------------------------------------------------ attributes


def _selectors(driver: str, devices: Sequence[Json]) -> dict[str, str]:
    """A condition for each device that is true for it alone among those of its pool: by its UUID, or else by another
    attribute that no two of them share. Those without such an attribute are left out."""
    values = {body["name"]: dict(_scalars(driver, body)) for body in devices}
    counts = Counter(entry for attributes in values.values() for entry in attributes.items())
    found = {}
    for name, attributes in values.items():
        own = [entry for entry in attributes.items() if counts[entry] == 1]
        if own:
            (domain, attribute), value = min(own, key=lambda entry: (_rank(entry[0][1]), entry[0]))
            place = f"device.attributes[{json.dumps(domain)}]"
            found[name] = (
                f"device.driver == {json.dumps(driver)} && {json.dumps(attribute)} in {place} && "
                f"{place}.{attribute} == {json.dumps(value)}"
            )
    return found


def _rank(attribute: str) -> int:
    """Lower for attributes that stay different when a node gets another device."""
    name = attribute.lower()
    return 0 if name == "uuid" else 1 if any(word in name for word in _PLACES) else 2


def _scalars(driver: str, body: Json) -> Iterator[tuple[tuple[str, str], str | int]]:
    """Texts and numbers, by domain and name."""
    for name, value in (body.get("attributes") or {}).items():
        domain, slash, own = name.rpartition("/")
        for kind in ("string", "int"):
            if (given := (value or {}).get(kind)) is not None:
                yield (domain if slash else driver, own), given


def _text(body: Json, *names: str) -> str:
    """The first of these attributes of the driver, or of a domain of its own, that is a text."""
    for wanted in names:
        for name, value in (body.get("attributes") or {}).items():
            if name.rpartition("/")[2] == wanted and isinstance(text := (value or {}).get("string"), str) and text:
                return text
    return ""


def _natural(name: str) -> list[Any]:
    """gpu-2 before gpu-10."""
    parts = "".join(character if character.isdigit() else f" {character} " for character in name).split()
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
