"""`plan-failed`: planning a queue raises an error, and so nothing of it starts."""

from __future__ import annotations

from corral.core.alerts.facts import QueueFact
from corral.core.alerts.signal import Finding


def read(queue: QueueFact) -> float | None:
    return 1.0 if queue.plan_failure else 0.0


def describe(queue: QueueFact, value: float) -> Finding:
    return Finding(text=f"queue {queue.id} cannot be planned: {queue.plan_failure}")
