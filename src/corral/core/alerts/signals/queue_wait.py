"""`queue-wait`: the longest wait in a queue, in minutes."""

from __future__ import annotations

from corral.core.alerts.facts import QueueFact
from corral.core.alerts.signal import Finding


def read(queue: QueueFact) -> float | None:
    return queue.longest_wait_seconds / 60


def describe(queue: QueueFact, value: float) -> Finding:
    first = f": {queue.first_job}" if queue.first_job else ""
    return Finding(text=f"the longest wait in queue {queue.id} is {value:.0f} min{first}")
