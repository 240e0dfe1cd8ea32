"""Fleets as short texts: `8x8xV100`, or `4x8xA100:96:1TiB,10x4xT4`.

Without CPUs and memory in the text, CPUs and memory are not counted.
"""

from __future__ import annotations

import re

from corral.core.model import WHOLE, Gpu, Node
from corral.core.quantities import parse_bytes

FORM = "NODESxGPUS[xMODEL][:CPUS[:MEMORY]], several separated by commas, such as 8x8xV100"
#: A typing mistake must not fill the memory.
MOST_GPUS = 1_000_000
_PART = re.compile(r"(\d+)x(\d+)(?:x([^\s:,]+))?(?::(\d+)(?::([^\s:,]+))?)?")


def parse_fleet(text: str) -> list[Node]:
    """The nodes that the text describes. Raises ValueError."""
    nodes: list[Node] = []
    gpus = 0
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part.strip()!r} is not a fleet: write {FORM}")
        count, each, model = int(found[1]), int(found[2]), found[3] or "GPU"
        gpus += count * each
        if not count or count > MOST_GPUS or gpus > MOST_GPUS:
            raise ValueError(f"{part.strip()!r}: a fleet has 1 node or more, and at most {MOST_GPUS:,} GPUs")
        cpu_milli = int(found[4] or 0) * WHOLE
        memory_bytes = parse_bytes(found[5]) if found[5] else 0
        for _ in range(count):
            name = f"n{len(nodes) + 1}"
            devices = tuple(Gpu(id=f"{name}/{index}", index=index, model=model) for index in range(each))
            nodes.append(Node(id=name, cpu_milli=cpu_milli, memory_bytes=memory_bytes, gpus=devices))
    return nodes
