"""The linked GPUs of this machine: by NVLink, or else by being on the same NUMA node, as the driver reports.

All GPUs of a group are linked to one another. On machines whose links form a mesh, two GPUs that would communicate
through a third one are in different groups. Links that the driver does not report are not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pynvml  # type: ignore[import-untyped]

Key = TypeVar("Key")

#: Whether two GPUs, given by their handles, are linked.
AreLinked = Callable[[Any, Any], bool]


def link_groups(handles: Mapping[str, Any]) -> dict[str, str]:
    """The group of every GPU (by its id, with its handle, in bus order) that is linked to another one."""
    groups: dict[str, str] = {}
    for kind, are_linked in (("nvlink", _by_nvlink), ("numa", _by_numa_node)):
        left = {gpu: handle for gpu, handle in handles.items() if gpu not in groups}
        found = [group for group in cliques(left, are_linked) if len(group) > 1]
        groups |= {gpu: f"{kind}-{number}" for number, group in enumerate(found) for gpu in group}
    return groups


def cliques(handles: Mapping[Key, Any], are_linked: AreLinked) -> Sequence[Sequence[Key]]:
    """Each GPU joins the first group all of whose members it is linked to."""
    found: list[list[Key]] = []
    for gpu, handle in handles.items():
        for group in found:
            if all(are_linked(handles[other], handle) for other in group):
                group.append(gpu)
                break
        else:
            found.append([gpu])
    return found


def _by_nvlink(one: Any, other: Any) -> bool:
    """Whether two GPUs can access each other's memory by NVLink, also through switches."""
    try:
        status = pynvml.nvmlDeviceGetP2PStatus(one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except pynvml.NVMLError:
        return False
    return bool(status == pynvml.NVML_P2P_STATUS_OK)


def _by_numa_node(one: Any, other: Any) -> bool:
    try:
        level = pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other)
    except pynvml.NVMLError:
        return False
    return bool(level <= pynvml.NVML_TOPOLOGY_NODE)
