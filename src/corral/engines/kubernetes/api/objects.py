"""Reads objects of the API: quantities, the requests of pods, conditions and times. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from corral.engines.kubernetes.api.client import Json

CPU, MEMORY, PODS = "cpu", "memory", "pods"
#: The container of the job, among those that webhooks of the cluster add to a pod, such as proxies of a service mesh.
CONTAINER = "job"
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_FACTORS: Mapping[str, Decimal] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
#: The phases in which a pod holds nothing any more.
_OVER = ("Succeeded", "Failed")


def container_of(pod: Json) -> Json:
    """The specification of the job's container. Raises KeyError for a pod without one."""
    for container in pod["spec"]["containers"]:
        if container["name"] == CONTAINER:
            return dict(container)
    raise KeyError(CONTAINER)


def container_status(pod: Json) -> Json:
    """The state of the job's container; empty while there is none."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((status for status in statuses if status["name"] == CONTAINER), {})


def quantity(text: object) -> Decimal:
    """A Kubernetes quantity such as 100m, 2, 16Gi or 1e3. Raises ValueError."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    try:
        return Decimal(match[1]) * _FACTORS[match[2] or ""]
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a quantity") from error


def amounts(resources: Mapping[str, Any] | None) -> Counter[str]:
    """Resources by name: CPUs in thousandths, memory in bytes, everything else in whole units, rounded up. What cannot
    be read counts as none."""
    found = Counter[str]()
    for name, text in (resources or {}).items():
        try:
            value = quantity(text)
        except ValueError:
            continue
        found[name] = math.ceil(value * 1000 if name == CPU else value)
    return found


def requests_of(pod: Json) -> Counter[str]:
    """The resources that the scheduler reserves for a pod: those of its containers together, or more if one of its init
    containers needs more, and the overhead of its runtime. A pod counts as one of the node's pods.
    """
    spec = pod["spec"]
    sidecars, longest = Counter[str](), Counter[str]()
    for container in spec.get("initContainers") or ():
        mine = _requested(container)
        if container.get("restartPolicy") == "Always":
            sidecars += mine
            mine = Counter(sidecars)
        else:
            mine = mine + sidecars
        longest |= mine
    total = sidecars + sum((_requested(container) for container in spec.get("containers") or ()), Counter[str]())
    total |= longest
    if isinstance(whole := spec.get("resources"), dict):
        total.update({name: value - total[name] for name, value in _requested({"resources": whole}).items()})
    total += amounts(spec.get("overhead"))
    total[PODS] = 1
    return total


def _requested(container: Mapping[str, Any]) -> Counter[str]:
    resources = container.get("resources") or {}
    # What has a limit and no request is requested as much as its limit.
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def is_over(pod: Json) -> bool:
    return phase(pod) in _OVER


def phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def conditions(body: Json) -> dict[str, Json]:
    """The conditions of a pod or a node, by type."""
    return {condition["type"]: condition for condition in (body.get("status") or {}).get("conditions") or ()}


def condition(body: Json, kind: str) -> Json:
    return conditions(body).get(kind, {})


def name_of(body: Json) -> str:
    return str(body["metadata"]["name"])


def labels_of(body: Json) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}


def annotations_of(body: Json) -> Mapping[str, str]:
    return body["metadata"].get("annotations") or {}


def is_leaving(body: Json) -> bool:
    """Whether its deletion was asked for."""
    return "deletionTimestamp" in body["metadata"]


def moment(text: object) -> float | None:
    """A time of the API, in seconds since the epoch; None if there is none."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(_micros(text)).timestamp()
    except ValueError:
        return None


def _micros(text: str) -> str:
    """Python reads at most six digits of a second; Kubernetes writes up to nine."""
    return re.sub(r"\.(\d{6})\d+", r".\1", text)


def joined(texts: Iterable[str]) -> str:
    return "; ".join(text for text in texts if text)
