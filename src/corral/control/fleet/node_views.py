"""Nodes and GPUs with what is on them: jobs, health, and whether a job could start there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass

from corral.control.fleet.draining.drain_records import Drain
from corral.core.fleet.free_gpus import idle_gpus
from corral.core.model import Gpu, Job, Node, NodeState
from corral.core.monitoring.health.model import Condition
from corral.core.snapshot.node_index import Slot


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuView:
    gpu: Gpu
    node: str
    cluster: str
    held_milli: int
    jobs: tuple[Job, ...]
    #: others hold it who are not corral's
    is_taken: bool = False
    is_free: bool = False
    #: idle and usable, but reserved for some users
    is_reserved: bool = False
    #: None while nothing was ever held against it
    condition: Condition | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeView:
    node: Node
    gpus: tuple[GpuView, ...]
    jobs: tuple[Job, ...]
    #: filled in for the page of a node; None if the node is not being drained
    drain: Drain | None = None

    @property
    def state(self) -> NodeState:
        """The state that is shown: a draining node without jobs is drained."""
        is_drained = self.node.state is NodeState.DRAINING and not self.jobs
        return NodeState.DRAINED if is_drained else self.node.state

    @property
    def free_gpus(self) -> int:
        return sum(view.is_free for view in self.gpus)

    @property
    def reserved_gpus(self) -> int:
        return sum(view.is_reserved for view in self.gpus)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePage:
    """Nodes in their order, and whether there are more behind them."""

    nodes: tuple[NodeView, ...]
    is_last: bool


def node_page(views: Iterable[NodeView], *, gpus: int, nodes: int | None = None) -> NodePage:
    """The first nodes: as many as have so many GPUs together, but at least one, and no more than `nodes`."""
    found: list[NodeView] = []
    count = 0
    for view in views:
        count += len(view.gpus)
        if found and (count > gpus or len(found) == nodes):
            return NodePage(nodes=tuple(found), is_last=False)
        found.append(view)
    return NodePage(nodes=tuple(found), is_last=True)


def node_view(slot: Slot, jobs: Collection[Job], closed: Set[str], conditions: Mapping[str, Condition]) -> NodeView:
    """One node. `jobs` are those that hold resources on it, `closed` the GPUs that are reserved."""
    node = slot.node
    held = _held_on(node.id, jobs)
    idle = set(idle_gpus(slot))
    return NodeView(
        node=node,
        jobs=tuple(jobs),
        gpus=tuple(
            GpuView(
                gpu=gpu,
                node=node.id,
                cluster=node.cluster,
                held_milli=sum(milli for _, milli in held.get(gpu.id, ())),
                jobs=tuple(job for job, _ in held.get(gpu.id, ())),
                is_taken=gpu.id in node.taken.gpus,
                is_free=gpu.id in idle and gpu.id not in closed,
                is_reserved=gpu.id in idle and gpu.id in closed,
                condition=conditions.get(gpu.id),
            )
            for gpu in node.gpus
        ),
    )


def _held_on(node: str, jobs: Iterable[Job]) -> dict[str, list[tuple[Job, int]]]:
    """The jobs that hold each GPU, and how much of it."""
    held: dict[str, list[tuple[Job, int]]] = {}
    for job in jobs:
        for grant in job.allocation.grants if job.allocation else ():
            if grant.node == node:
                for gpu in grant.gpus:
                    held.setdefault(gpu, []).append((job, grant.gpu_milli))
    return held
