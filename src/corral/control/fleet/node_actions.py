"""Actions of operators on nodes, and measured loads of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from corral.control.errors import InUse, NotFound, WrongState
from corral.control.fleet.draining.drain_records import store_drains
from corral.control.fleet.node_effects import NodeEffect, ReleaseEffect, WithholdEffect
from corral.control.live.unit_of_work import Caller, Work
from corral.control.monitoring.gpu_health import forget
from corral.control.people.operators import require_operator
from corral.control.scheduling.reservations import forget_gpus
from corral.core.model import Job, Node, NodeState
from corral.core.snapshot.changes import DropNode, PutNode

#: Smaller differences of a load are ignored: otherwise every reading would change the snapshot and be journaled.
LOAD_STEP = 0.05


def cordon(work: Work, caller: Caller, node_id: str) -> Node:
    """Cordons a node: it gets no new jobs; running jobs continue."""
    return _withhold(work, caller, node_id, NodeState.CORDONED, "node.cordoned")


def drain(work: Work, caller: Caller, node_id: str) -> Node:
    """Drains a node: it gets no new jobs, and its jobs are moved or end. `drains.drain` adds the time by which the node
    must be empty.
    """
    return _withhold(work, caller, node_id, NodeState.DRAINING, "node.draining")


def uncordon(work: Work, caller: Caller, node_id: str) -> Node:
    return _withhold(work, caller, node_id, NodeState.READY, "node.uncordoned")


def remove(work: Work, caller: Caller, node_id: str) -> Node:
    """Removes a node that will not return, with the decisions about its GPUs."""
    require_operator(caller, "manage nodes and GPUs")
    node = _node(work, node_id)
    jobs = [job for job in work.state.snapshot.jobs.values() if is_on(job, node_id)]
    if jobs:
        first = min(jobs, key=lambda job: job.serial)
        raise InUse(
            f"job {first.id} ({first.name}) of {first.user} is on node {node_id}",
            field="node",
            jobs=sorted(job.id for job in jobs),
        )
    observed = work.state.observed.get(node.cluster)
    if observed is None:
        raise WrongState(f"cluster {node.cluster} has not been observed yet: try again in a moment", state=node.state)
    if node_id in observed:
        raise WrongState(f"node {node_id} is still there: its engine reports it as {node.state}", state=node.state)
    work.tx.fleet.delete_nodes([node_id])
    forget(work, [gpu.id for gpu in node.gpus])
    forget_gpus(work, {gpu.id for gpu in node.gpus})
    work.change(DropNode(id=node_id))
    work.record(caller, "node.removed", node_id, detail={"gpus": len(node.gpus)})
    return node


def set_loads(work: Work, loads: Mapping[str, Mapping[str, float]]) -> None:
    """Sets the measured utilisation of GPUs by node, for the placement policy by load. A node's load is their mean."""
    snapshot = work.state.snapshot
    for node_id, gpus in loads.items():
        node = snapshot.nodes.get(node_id)
        if node is None or not gpus:
            continue
        load = sum(gpus.values()) / len(gpus)
        free_milli = snapshot.fleet.slot(node_id).free_milli
        # No choice depends on the load of a GPU that is held as a whole.
        shown = {gpu: round(value, 1) for gpu, value in gpus.items() if free_milli.get(gpu)}
        gpu_loads = tuple(sorted((gpu, value) for gpu, value in shown.items() if value))
        if abs((node.load or 0.0) - load) >= LOAD_STEP or gpu_loads != node.gpu_loads:
            work.change(PutNode(node=replace(node, load=round(load, 2), gpu_loads=gpu_loads)), needs_cycle=False)


def effective_state(observed: NodeState, withheld: NodeState) -> NodeState:
    """A node that is down is shown as down; otherwise the decision of an operator counts."""
    if observed is NodeState.DOWN or withheld is NodeState.READY:
        return observed
    return withheld


def _withhold(work: Work, caller: Caller, node_id: str, wanted: NodeState, action: str) -> Node:
    """An operator's decision about a node. While the node is down it is kept for the time when it is back."""
    require_operator(caller, "manage nodes and GPUs")
    node = _node(work, node_id)
    if node.withheld is wanted and (wanted is not NodeState.READY or node.state is not NodeState.CORDONED):
        return node
    # The state as the engine reports it, as far as it can be derived; the engine will release what it withholds.
    observed = NodeState.DOWN if node.state is NodeState.DOWN else NodeState.READY
    changed = replace(node, withheld=wanted, state=effective_state(observed, wanted), reason="")
    work.tx.fleet.save_nodes([changed])
    if node_id in work.state.drains:
        del work.state.drains[node_id]
        store_drains(work.tx, work.state.drains)
    work.change(PutNode(node=changed))
    work.record(caller, action, node_id)
    work.state.spoken_at[node_id] = work.now
    instruct_engine(work, changed, by=caller.name)
    return changed


def instruct_engine(work: Work, node: Node, *, by: str = "", force: bool = True) -> None:
    """Withhold or release the node at the engine, so that programs of other systems follow the decision, too.
    Idempotent."""
    effect: NodeEffect = ReleaseEffect(node=node.id, force=force)
    if node.withheld is not NodeState.READY:
        effect = WithholdEffect(node=node.id, reason=f"{node.withheld} by {by}" if by else str(node.withheld))
    work.effects.nodes.append((node.cluster, effect))


def _node(work: Work, node_id: str) -> Node:
    node = work.state.snapshot.nodes.get(node_id)
    if node is None:
        raise NotFound(f"there is no node {node_id!r}", field="node")
    return node


def is_on(job: Job, node_id: str) -> bool:
    return job.allocation is not None and any(grant.node == node_id for grant in job.allocation.grants)
