"""AMD's GPUs of this machine, as the kernel's compute driver (KFD) lists them: in the order and under the ids that ROCm
uses, with the device file of each. Needs no program of ROCm, and starts nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from corral.core.fleet.gpu_ids import amd_gpu_id
from corral.core.model import Gpu
from corral.engines.local.topology import cliques

logger = logging.getLogger(__name__)

#: The device file through which programs compute on any of the GPUs.
KFD_DEVICE = "/dev/kfd"
_NODES = "sys/class/kfd/kfd/topology/nodes"
_NAMES = ("opt/amdgpu/share/libdrm/amdgpu.ids", "usr/share/libdrm/amdgpu.ids")
#: Kinds of memory banks that are the GPU's own.
_OWN_MEMORY = (1, 2)
_XGMI = 11
#: Names of the models that servers have, by the PCI id: `amdgpu.ids` is missing on many of them, or too old.
_INSTINCT = {
    0x738C: "MI100", 0x7408: "MI250X", 0x740C: "MI250X", 0x740F: "MI210", 0x74A0: "MI300A", 0x74A1: "MI300X",
    0x74A2: "MI308X", 0x74A5: "MI325X", 0x74A9: "MI300X", 0x74B5: "MI300X", 0x75A0: "MI350X", 0x75A3: "MI355X",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class AmdGpu:
    """`device` is its own device file, beside `KFD_DEVICE`, which all share."""

    gpu: Gpu
    device: str


def find_amd_gpus(root: Path = Path("/")) -> tuple[AmdGpu, ...]:
    """Empty without the driver. A GPU without an id of its own, such as one that is a part of a CPU, is left out: no
    variable of ROCm can name it."""
    found: list[AmdGpu] = []
    links: dict[int, tuple[str, frozenset[int]]] = {}
    names = _product_names(root)
    for number in sorted(int(path.name) for path in (root / _NODES).glob("[0-9]*")):
        place = root / _NODES / str(number)
        values = _values(place / "properties")
        if not values.get("simd_count"):
            continue  # a CPU
        unique_id, index = values.get("unique_id", 0), len(links)
        gpu_id = amd_gpu_id(unique_id)
        links[number] = (gpu_id, _linked(place))
        if not unique_id or any(known.gpu.id == gpu_id for known in found):
            logger.warning("AMD GPU %d has no id of its own and is left out", index)
            continue
        minor = values.get("drm_render_minor", 0)
        found.append(
            AmdGpu(
                gpu=Gpu(
                    id=gpu_id, index=index, model=_model(root, values, minor, names), memory_bytes=_memory_bytes(place)
                ),
                device=f"/dev/dri/renderD{minor}",
            )
        )
    groups = _link_groups(links)
    return tuple(replace(each, gpu=replace(each.gpu, link_group=groups.get(each.gpu.id, ""))) for each in found)


def _link_groups(links: Mapping[int, tuple[str, frozenset[int]]]) -> dict[str, str]:
    """Groups of GPUs that are all joined to one another by XGMI."""
    nodes = {node: node for node in links}
    groups = cliques(nodes, lambda node, other: node in links[other][1] or other in links[node][1])
    joined = [group for group in groups if len(group) > 1]
    return {links[node][0]: f"xgmi-{number}" for number, group in enumerate(joined) for node in group}


def _linked(place: Path) -> frozenset[int]:
    """The nodes of the topology to which XGMI joins this one."""
    found = [_values(path) for path in place.glob("*_links/*/properties")]
    return frozenset(link["node_to"] for link in found if link.get("type") == _XGMI and "node_to" in link)


def _memory_bytes(place: Path) -> int:
    banks = [_values(path) for path in place.glob("mem_banks/*/properties")]
    return sum(bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in _OWN_MEMORY)


def _model(root: Path, values: Mapping[str, int], minor: int, names: Mapping[tuple[int, int], str]) -> str:
    device = values.get("device_id", 0)
    if device in _INSTINCT:
        return _INSTINCT[device]
    revision = _text(root / f"sys/class/drm/renderD{minor}/device/revision").strip() or "0"
    return _short(names.get((device, int(revision, 16)), f"AMD {device:04x}"))


def _short(product: str) -> str:
    """ "AMD Radeon PRO W7900" is Radeon-PRO-W7900."""
    return "-".join(product.partition(" / ")[0].removeprefix("AMD ").split())


def _product_names(root: Path) -> dict[tuple[int, int], str]:
    """Product names by PCI id and revision, as libdrm knows them."""
    for path in _NAMES:
        rows = [line.split(",", 2) for line in _text(root / path).splitlines() if not line.startswith("#")]
        if named := {_key(row): row[2].strip() for row in rows if len(row) == 3}:
            return named
    return {}


def _key(row: Sequence[str]) -> tuple[int, int]:
    return int(row[0].strip(), 16), int(row[1].strip(), 16)


def _values(path: Path) -> dict[str, int]:
    pairs = [line.split() for line in _text(path).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: Path) -> str:
    """Empty if the kernel does not show it to this process: a control group may hide some GPUs."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
