"""`node-lost`: 1 while a node is down, else 0."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value
from corral.core.model import NodeState


def measure(facts: Facts) -> dict[str, Value]:
    found = {}
    for node in facts.nodes:
        is_down = node.state is NodeState.DOWN
        gpus = f" with its {node.gpus} GPUs" if node.gpus else ""
        found[node.id] = Value(
            value=float(is_down),
            text=f"node {node.id}{gpus} is {'lost' if is_down else node.state}",
            jobs=node.jobs,
            node=node.id,
        )
    return found
