"""`node-lost`: 1 while a node is down, else 0."""

from __future__ import annotations

from corral.core.alerts.facts import NodeFact
from corral.core.alerts.signal import Finding
from corral.core.counts import counted
from corral.core.model import NodeState


def read(node: NodeFact) -> float | None:
    return float(node.state is NodeState.DOWN)


def describe(node: NodeFact, value: float) -> Finding:
    gpus = f" with its {counted(node.gpus, 'GPU')}" if node.gpus else ""
    is_so = "lost" if node.state is NodeState.DOWN else node.state
    return Finding(text=f"node {node.id}{gpus} is {is_so}", jobs=node.jobs, node=node.id)
