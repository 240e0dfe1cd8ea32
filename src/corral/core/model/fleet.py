"""Nodes and GPUs, as their engines report them and operators set them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_POOL = "default"

#: A label that every node has by itself: the name of its cluster.
CLUSTER_LABEL = "corral.cluster"

#: The label of a node whose GPUs are simulated.
VIRTUAL = ("virtual", "true")

#: Marks a slice of a GPU in the name of a model, followed by its profile, as in H200-MIG-1g.18gb.
_SLICE_MARK = "-MIG-"


class NodeState(StrEnum):
    READY = "ready"
    CORDONED = "cordoned"
    DRAINING = "draining"
    #: shown for a draining node without jobs; never stored
    DRAINED = "drained"
    DOWN = "down"


class GpuHealth(StrEnum):
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    id: str
    index: int
    model: str
    memory_bytes: int = 0
    health: GpuHealth = GpuHealth.HEALTHY
    pool: str = DEFAULT_POOL
    #: GPUs of a node with the same link group are linked to each other; empty while it is not known
    link_group: str = ""
    #: the pool that the GPU moves to when its jobs have ended; until then it takes no new job. Empty: it stays
    next_pool: str = ""

    @property
    def takes_jobs(self) -> bool:
        """Whether new jobs may get the GPU, as far as the GPU itself is concerned."""
        return self.health is GpuHealth.HEALTHY and not self.next_pool


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Resources of a node that are held outside corral: corral does not allocate them."""

    gpus: tuple[str, ...] = ()
    cpu_milli: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    id: str
    cluster: str = "local"
    state: NodeState = NodeState.READY
    cpu_milli: int = 0
    memory_bytes: int = 0
    gpus: tuple[Gpu, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    #: measured load between 0 and 1; None before the first measurement
    load: float | None = None
    #: measured utilisation of GPUs with a free part, in tenths; GPUs without load are left out
    gpu_loads: tuple[tuple[str, float], ...] = ()
    #: the state that an operator has set: ready, cordoned or draining; kept while the node is down
    withheld: NodeState = NodeState.READY
    taken: Taken = Taken()
    #: why the node's engine does not use it, as set in that cluster
    reason: str = ""

    @property
    def all_labels(self) -> tuple[tuple[str, str], ...]:
        """The node's own labels and the label of its cluster."""
        return (*self.labels, (CLUSTER_LABEL, self.cluster))


def is_slice(model: str) -> bool:
    """Whether GPUs of this model are slices (MIG) of larger ones: separate devices that are never shared."""
    return _SLICE_MARK in model
