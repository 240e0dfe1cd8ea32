"""`queue-length`: jobs that wait in a queue."""

from __future__ import annotations

from corral.core.alerts.facts import QueueFact
from corral.core.alerts.signal import Finding


def read(queue: QueueFact) -> float | None:
    return float(queue.waiting)


def describe(queue: QueueFact, value: float) -> Finding:
    return Finding(text=f"{value:.0f} jobs wait in queue {queue.id}")
