"""What operators do with nodes and GPUs, and what measurements say about nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from corral.control.errors import Forbidden, NotFound, WrongState
from corral.control.work import Caller, Work
from corral.core.changes import PutNode
from corral.core.model import Gpu, GpuHealth, Node, NodeState

#: Loads closer than this are the same: a picture that changes with every reading would be journaled with every reading.
LOAD_STEP = 0.05


def cordon(work: Work, caller: Caller, node_id: str) -> Node:
    """Take nothing new; what runs goes on."""
    return _set_state(work, caller, node_id, NodeState.CORDONED, "node.cordoned")


def drain(work: Work, caller: Caller, node_id: str) -> Node:
    """Take nothing new and empty: what runs may end by itself."""
    return _set_state(work, caller, node_id, NodeState.DRAINING, "node.draining")


def uncordon(work: Work, caller: Caller, node_id: str) -> Node:
    return _set_state(work, caller, node_id, NodeState.READY, "node.uncordoned")


def reset_health(work: Work, caller: Caller, gpu_id: str) -> Gpu:
    """An operator's word that a GPU may be used again."""
    _only_operators(caller)
    node, gpu = _gpu(work, gpu_id)
    healthy = replace(gpu, health=GpuHealth.HEALTHY)
    if healthy != gpu:
        work.tx.fleet.save_gpu(healthy)
        gpus = tuple(healthy if other.id == gpu.id else other for other in node.gpus)
        work.change(PutNode(node=replace(node, gpus=gpus)))
        work.record(caller, "gpu.health-reset", gpu_id, detail={"was": gpu.health})
    return healthy


def set_loads(work: Work, loads: Mapping[str, float]) -> None:
    """Measured load of nodes, for the placement policy that goes by it."""
    for node_id, load in loads.items():
        node = work.state.snapshot.nodes.get(node_id)
        if node is not None and abs((node.load or 0.0) - load) >= LOAD_STEP:
            work.change(PutNode(node=replace(node, load=round(load, 2))), needs_cycle=False)


def _set_state(work: Work, caller: Caller, node_id: str, state: NodeState, action: str) -> Node:
    _only_operators(caller)
    node = work.state.snapshot.nodes.get(node_id)
    if node is None:
        raise NotFound(f"there is no node {node_id!r}", field="node")
    if node.state is NodeState.DOWN:
        raise WrongState(f"node {node_id} is down: its engine decides when it is back", state=node.state)
    changed = replace(node, state=state)
    if changed != node:
        work.tx.fleet.save_nodes([changed])
        work.change(PutNode(node=changed))
        work.record(caller, action, node_id)
    return changed


def _gpu(work: Work, gpu_id: str) -> tuple[Node, Gpu]:
    for node in work.state.snapshot.nodes.values():
        for gpu in node.gpus:
            if gpu.id == gpu_id:
                return node, gpu
    raise NotFound(f"there is no GPU {gpu_id!r}", field="gpu")


def _only_operators(caller: Caller) -> None:
    if not caller.is_operator:
        raise Forbidden("only operators manage nodes and GPUs")
