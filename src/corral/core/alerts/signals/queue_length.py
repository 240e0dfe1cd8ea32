"""`queue-length`: jobs that wait in a queue."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value


def measure(facts: Facts) -> dict[str, Value]:
    return {
        queue.name: Value(value=float(queue.waiting), text=f"{queue.waiting} jobs wait in queue {queue.name}")
        for queue in facts.queues
    }
