"""The resources that pods without a live attempt hold on each node, and the GPUs that plans of corral
name there. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import annotations_of, is_over, requests_of
from corral.engines.kubernetes.attempts.ends import has_ended
from corral.engines.kubernetes.attempts.pod_attempt import Attempt
from corral.engines.kubernetes.attempts.pods import GPUS_ANNOTATION

#: UUIDs or numbers of devices, as the device plugin is configured; other words, such as "all", are none.
_DEVICE = re.compile(r"(GPU|MIG)-[\w/-]+|\d{1,3}")


def others_use(
    other_pods: Mapping[str, Counter[str]], own: Mapping[str, Json], attempts: Iterable[Attempt]
) -> dict[str, Counter[str]]:
    """`other_pods`: sums over the pods of other users. A pod of corral whose attempt is over keeps its resources until
    its kubelet has ended it."""
    live = {name for attempt in attempts if not attempt.is_over for name in attempt.pods}
    held = {node: Counter(sums) for node, sums in other_pods.items()}
    for name, pod in own.items():
        node = pod["spec"].get("nodeName")
        if node and name not in live and not is_over(pod):
            held.setdefault(node, Counter()).update(requests_of(pod))
    return held


def leaving_gpus(own: Mapping[str, Json], attempts: Iterable[Attempt]) -> set[str]:
    """The GPUs of plans whose programs have not ended although their attempts are over."""
    live = {name for attempt in attempts if not attempt.is_over for name in attempt.pods}
    pods = (pod for name, pod in own.items() if name not in live and pod["spec"].get("nodeName") and not has_ended(pod))
    return {gpu_id for pod in pods for gpu_id in annotations_of(pod).get(GPUS_ANNOTATION, "").split(",") if gpu_id}


def own_pods(attempts: Iterable[Attempt]) -> Counter[str]:
    """How many pods live attempts have on each node, or will have."""
    return Counter(node for attempt in attempts if not attempt.is_over for node in attempt.nodes)


def named_gpus(attempts: Iterable[Attempt]) -> dict[str, frozenset[str]]:
    named: dict[str, set[str]] = {}
    for attempt in attempts:
        if not attempt.is_over:
            for node, gpus in zip(attempt.nodes, attempt.gpus, strict=True):
                named.setdefault(node, set()).update(gpus)
    return {node: frozenset(gpus) for node, gpus in named.items()}


def devices_of(attempts: Iterable[Attempt]) -> dict[str, str]:
    """The device of each GPU that a live attempt holds, as the program of its pod has seen it; "" if it is unknown, or
    if two pods say that they have it."""
    held: dict[str, tuple[str, str]] = {}
    for attempt in attempts:
        for rank, gpus in enumerate(attempt.gpus if not attempt.is_over else ()):
            devices = attempt.devices.get(rank, "").split(",")
            is_known = len(devices) == len(gpus) and all(map(_DEVICE.fullmatch, devices))
            for number, gpu in enumerate(gpus):
                held[gpu] = attempt.nodes[rank], devices[number] if is_known else ""
    counts = Counter(held.values())
    return {gpu: device if counts[node, device] == 1 else "" for gpu, (node, device) in held.items()}
