"""`queue-length`: jobs that wait in a queue."""

from __future__ import annotations

from corral.core.alerts.facts import QueueFact
from corral.core.alerts.signal import Finding
from corral.core.counts import counted


def read(queue: QueueFact) -> float | None:
    return float(queue.waiting)


def describe(queue: QueueFact, value: float) -> Finding:
    return Finding(text=f"{counted(round(value), 'job waits', 'jobs wait')} in queue {queue.id}")
