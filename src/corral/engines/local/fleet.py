"""The nodes and GPUs of the local engine: those of this machine, found by NVML or AMD's driver, or virtual ones.

Discovery happens once: hardware does not change under a running server, and virtual hardware changes by a drill only. A
missing driver is no error: a machine without GPUs is a node for CPU jobs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pynvml  # type: ignore[import-untyped]

from corral.core.model import WHOLE, Gpu, Node, NodeState
from corral.engines.local.amd_gpus import find_amd_gpus
from corral.engines.local.faults import FaultFile, GpuFault, announce_fleet
from corral.engines.local.topology import link_groups
from corral.engines.local.virtual import GpuSpec, build_nodes, gpu_spec, parse_virtual_gpus, parse_virtual_nodes

logger = logging.getLogger(__name__)

#: Machines have fewer whole GPUs than this, and GPUs fewer slices.
SLICE_INDEX_STEP = 100


class HostFleet:
    """This machine: its CPUs, its memory, its real GPUs. Those of one vendor: next to NVIDIA's, AMD's are not used."""

    def __init__(self, name: str | None = None) -> None:
        gpus = discover_gpus() or tuple(found.gpu for found in find_amd_gpus())
        models = sorted({gpu.model for gpu in gpus})
        self._cpus = os.cpu_count() or 1
        self._node = Node(
            id=name or host_name(),
            cpu_milli=self._cpus * WHOLE,
            memory_bytes=psutil.virtual_memory().total,
            gpus=gpus,
            labels=tuple(("gpu-model", model) for model in models[:1]),
        )

    def nodes(self) -> tuple[Node, ...]:
        return (replace(self._node, load=min(1.0, os.getloadavg()[0] / self._cpus)),)


class VirtualFleet:
    """Virtual nodes whose processes really run on this machine. `faults` may take some of them down."""

    def __init__(self, nodes: tuple[Node, ...], faults: FaultFile | None = None) -> None:
        self._all_ready = nodes
        self._faults = faults
        #: the result of the last call: which nodes are down, and all nodes with that state
        self._seen: tuple[frozenset[str], tuple[Node, ...]] = (frozenset(), nodes)

    def nodes(self) -> tuple[Node, ...]:
        down = self._faults.current().down if self._faults else frozenset()
        if down != self._seen[0]:
            # Built again only after a change: there may be thousands of nodes.
            nodes = (replace(node, state=NodeState.DOWN) if node.id in down else node for node in self._all_ready)
            self._seen = (down, tuple(nodes))
        return self._seen[1]

    def faults(self) -> Mapping[str, GpuFault]:
        """The faults that a drill has set on GPUs."""
        return self._faults.current().gpus if self._faults else {}

    def spec(self, model: str) -> GpuSpec:
        """The specification of a GPU model, for simulated readings."""
        return gpu_spec(model)


def fleet_for(
    *, virtual_gpus: str | None = None, virtual_nodes_text: str | None = None, drill_directory: Path | None = None
) -> HostFleet | VirtualFleet:
    """The fleet for these options. A drill file in `drill_directory` makes virtual nodes and GPUs fail. Raises
    ValueError with the allowed form."""
    if virtual_gpus and virtual_nodes_text:
        raise ValueError("give either virtual GPUs or virtual nodes, not both")
    if not virtual_gpus and not virtual_nodes_text:
        if drill_directory is not None:
            announce_fleet(drill_directory, ())
        return HostFleet()
    groups = (parse_virtual_gpus(virtual_gpus),) if virtual_gpus else parse_virtual_nodes(virtual_nodes_text or "")
    nodes = build_nodes(groups, host=host_name())
    if drill_directory is None:
        return VirtualFleet(nodes)
    announce_fleet(drill_directory, nodes)
    return VirtualFleet(nodes, FaultFile(drill_directory))


def host_name() -> str:
    """This machine's short name."""
    return socket.gethostname().partition(".")[0] or "localhost"


def discover_gpus() -> tuple[Gpu, ...]:
    """The GPUs that NVML reports, in bus order; empty without a driver. A GPU that is partitioned (MIG) is replaced by
    its slices."""
    with _nvml() as available:
        if not available:
            return ()
        found: list[Gpu] = []
        whole: dict[str, object] = {}
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                if _is_partitioned(handle):
                    found += _slices(handle, index)
                else:
                    found.append(_gpu(handle, index))
                    whole[found[-1].id] = handle
            except pynvml.NVMLError as error:
                logger.warning("GPU %d does not answer and is left out: %s", index, error)
        # Slices are not linked to each other, not even slices of one GPU.
        groups = link_groups(whole)
        return tuple(replace(gpu, link_group=groups.get(gpu.id, "")) for gpu in found)


@contextlib.contextmanager
def _nvml() -> Iterator[bool]:
    """Whether the driver is available, until the block ends."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        logger.info("no NVIDIA driver: %s", error)
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def _slices(handle: object, index: int) -> list[Gpu]:
    slices = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with contextlib.suppress(pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument):
            part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            # The driver gives slices no index of their own: theirs begin above those of all whole GPUs.
            slices.append(_gpu(part, (index + 1) * SLICE_INDEX_STEP + place))
    return slices


def _is_partitioned(handle: object) -> bool:
    """Whether the GPU is partitioned into slices (MIG). Most models cannot be."""
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except pynvml.NVMLError:
        return False


def _gpu(handle: object, index: int) -> Gpu:
    return Gpu(
        id=_text(pynvml.nvmlDeviceGetUUID(handle)),
        index=index,
        model=model_name(_text(pynvml.nvmlDeviceGetName(handle))),
        memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def model_name(product: str) -> str:
    """The short name that users write: "NVIDIA A100-SXM4-80GB" is A100-80G, "NVIDIA H200" is H200, and its slice
    "NVIDIA H200 MIG 1g.18gb" is H200-MIG-1g.18gb."""
    whole, cut, profile = product.partition(" MIG ")
    if cut:
        return f"{model_name(whole)}-MIG-{profile}"
    words = product.replace("-", " ").split()
    kept = [word for word in words if word.upper() not in _NOISE and not word.upper().startswith("SXM")]
    name = "-".join(kept).replace("GeForce-", "").replace("RTX-", "RTX").replace("Tesla-", "")
    return name.removesuffix("B") if name.upper().endswith("GB") else name


_NOISE = {"NVIDIA", "PCIE", "NVL", "HBM2", "HBM3", "GENERATION"}
