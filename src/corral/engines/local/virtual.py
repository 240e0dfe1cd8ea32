"""Virtual GPUs: the meaning of `--virtual-gpus 8xA100-80G` and `--virtual-nodes 6x4xA10,5x4xA100-80G`. Pure.

With `/4` behind the model, every four GPUs of a node are linked to each other. A model such as H200-MIG-1g.18gb is a
slice of a larger GPU. Only the hardware is virtual; the processes that get these GPUs are real. Telemetry simulates the
readings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from corral.core.model import VIRTUAL, WHOLE, Gpu, Node

GIB = 1 << 30
DEFAULT_MEMORY_GIB = 24
DEFAULT_TDP_WATTS = 250.0
DEFAULT_SM_CLOCK_MHZ = 1500.0
DEFAULT_MEMORY_CLOCK_MHZ = 5000.0
#: The CPUs and memory that a virtual node has for every GPU.
CPUS_PER_GPU = 16
MEMORY_BYTES_PER_GPU = 64 * GIB
MAX_NODES = 10_000
MAX_GPUS_PER_NODE = 64

GPUS_FORM = "COUNTxMODEL, for example 8xA100-80G, or 8xA100-80G/4 for links between every four"
NODES_FORM = "NODESxGPUSxMODEL, several groups separated by commas, for example 6x4xA10,5x8xA100-80G/4"

_MODEL = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,31}")
_MEMORY_SUFFIX = re.compile(r"-(\d{1,4})GB?$", re.IGNORECASE)
_SLICE_SUFFIX = re.compile(r"-MIG-(\d)g\.(\d{1,4})gb$")
#: The number of slices that a GPU can be partitioned into.
_PARTS = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuSpec:
    """The data sheet of a model, as far as corral simulates it."""

    model: str
    memory_bytes: int
    tdp_watts: float
    idle_watts: float
    #: the highest clocks
    sm_clock_mhz: float
    memory_clock_mhz: float


#: Model, memory in GiB, board power and power at rest in watts, highest SM and memory clocks in MHz, from the vendors'
#: data sheets.
_SHEETS = (
    ("A10", 24, 150.0, 16.0, 1695.0, 6251.0),
    ("A30", 24, 165.0, 26.0, 1440.0, 1215.0),
    ("A40", 48, 300.0, 28.0, 1740.0, 7251.0),
    ("A100", 40, 400.0, 52.0, 1410.0, 1215.0),
    ("H100", 80, 700.0, 68.0, 1980.0, 2619.0),
    ("H200", 141, 700.0, 74.0, 1980.0, 3201.0),
    ("B200", 180, 1000.0, 110.0, 1965.0, 3996.0),
    ("L4", 24, 72.0, 12.0, 2040.0, 6251.0),
    ("L40S", 48, 350.0, 32.0, 2520.0, 9001.0),
    ("V100", 32, 300.0, 38.0, 1530.0, 877.0),
    ("P100", 16, 250.0, 26.0, 1480.0, 715.0),
    ("T4", 16, 70.0, 9.0, 1590.0, 5001.0),
    ("RTX3090", 24, 350.0, 22.0, 1695.0, 9751.0),
    ("RTX4090", 24, 450.0, 18.0, 2520.0, 10501.0),
    ("RTX5090", 32, 575.0, 22.0, 2407.0, 14001.0),
)
_KNOWN = {
    name: GpuSpec(
        model=name,
        memory_bytes=memory * GIB,
        tdp_watts=tdp,
        idle_watts=idle,
        sm_clock_mhz=sm_clock,
        memory_clock_mhz=memory_clock,
    )
    for name, memory, tdp, idle, sm_clock, memory_clock in _SHEETS
}


def gpu_spec(model: str) -> GpuSpec:
    """The data sheet of a model. A suffix such as -80G sets the memory; an unknown name is an average GPU. A slice has
    the memory of its profile, and its part of the power."""
    profile = _SLICE_SUFFIX.search(model)
    if profile:
        whole, part = gpu_spec(model[: profile.start()]), int(profile.group(1)) / _PARTS
        return replace(
            whole,
            model=model,
            memory_bytes=int(profile.group(2)) * GIB,
            tdp_watts=whole.tdp_watts * part,
            idle_watts=whole.idle_watts * part,
        )
    suffix = _MEMORY_SUFFIX.search(model)
    family = model[: suffix.start()] if suffix else model
    known = _KNOWN.get(family.upper())
    default = known.memory_bytes if known else DEFAULT_MEMORY_GIB * GIB
    return GpuSpec(
        model=model,
        memory_bytes=int(suffix.group(1)) * GIB if suffix else default,
        tdp_watts=known.tdp_watts if known else DEFAULT_TDP_WATTS,
        idle_watts=known.idle_watts if known else DEFAULT_TDP_WATTS / 10,
        sm_clock_mhz=known.sm_clock_mhz if known else DEFAULT_SM_CLOCK_MHZ,
        memory_clock_mhz=known.memory_clock_mhz if known else DEFAULT_MEMORY_CLOCK_MHZ,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeGroup:
    """A number of equal virtual nodes."""

    nodes: int
    gpus: int
    model: str
    #: how many GPUs are linked to each other; 0 means that no links are known
    linked: int = 0


def parse_virtual_gpus(text: str) -> NodeGroup:
    """The GPUs of one node. Raises ValueError with the allowed form."""
    parts = text.strip().split("x", 1)
    if len(parts) != 2:
        raise ValueError(f"virtual GPUs {text!r}: expected {GPUS_FORM}")
    gpus = _count(parts[0], text, "GPUs", MAX_GPUS_PER_NODE, GPUS_FORM)
    model, linked = _model_and_links(parts[1], text, GPUS_FORM)
    return NodeGroup(nodes=1, gpus=gpus, model=model, linked=linked)


def parse_virtual_nodes(text: str) -> tuple[NodeGroup, ...]:
    """Groups of nodes. Raises ValueError with the allowed form."""
    groups: list[NodeGroup] = []
    for part in text.split(","):
        fields = part.strip().split("x", 2)
        if len(fields) != 3:
            raise ValueError(f"virtual nodes {text!r}: expected {NODES_FORM}")
        model, linked = _model_and_links(fields[2], part, NODES_FORM)
        groups.append(
            NodeGroup(
                nodes=_count(fields[0], part, "nodes", MAX_NODES, NODES_FORM),
                gpus=_count(fields[1], part, "GPUs", MAX_GPUS_PER_NODE, NODES_FORM),
                model=model,
                linked=linked,
            )
        )
    return tuple(groups)


def _count(text: str, whole: str, what: str, most: int, form: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text) or not 1 <= int(text) <= most:
        raise ValueError(f"{whole.strip()!r}: the number of {what} must be 1 to {most}; expected {form}")
    return int(text)


def _model_and_links(text: str, whole: str, form: str) -> tuple[str, int]:
    model, cut, linked = text.partition("/")
    return _model(model, whole, form), _count(linked, whole, "linked GPUs", MAX_GPUS_PER_NODE, form) if cut else 0


def _model(text: str, whole: str, form: str) -> str:
    if not _MODEL.fullmatch(text):
        raise ValueError(
            f"{whole.strip()!r}: a GPU model has letters, digits, '-' and '.' and begins with a letter; expected {form}"
        )
    return text


def build_nodes(groups: tuple[NodeGroup, ...], *, host: str) -> tuple[Node, ...]:
    """One node has this host's name; several are numbered per model, so that a longer list keeps old names."""
    if sum(group.nodes for group in groups) == 1:
        return (_node(host, groups[0]),)
    numbers: dict[str, int] = {}
    nodes: list[Node] = []
    for group in groups:
        for _ in range(group.nodes):
            stem = group.model.lower()
            numbers[stem] = numbers.get(stem, 0) + 1
            nodes.append(_node(f"{stem}-{numbers[stem]:03d}", group))
    return tuple(nodes)


def _node(name: str, group: NodeGroup) -> Node:
    spec = gpu_spec(group.model)
    gpus = tuple(
        Gpu(
            id=f"{name}-gpu{index}",
            index=index,
            model=group.model,
            memory_bytes=spec.memory_bytes,
            link_group=f"nvlink-{index // group.linked}" if group.linked > 1 else "",
        )
        for index in range(group.gpus)
    )
    return Node(
        id=name,
        cpu_milli=group.gpus * CPUS_PER_GPU * WHOLE,
        memory_bytes=group.gpus * MEMORY_BYTES_PER_GPU,
        gpus=gpus,
        labels=(("gpu-model", group.model), VIRTUAL),
    )
