"""`queue-wait`: for how many minutes the job waits that waits longest in a queue."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value


def measure(facts: Facts) -> dict[str, Value]:
    found = {}
    for queue in facts.queues:
        minutes = queue.longest_wait_seconds / 60
        first = f": {queue.first_job}" if queue.first_job else ""
        text = f"the longest wait in queue {queue.name} is {minutes:.0f} min{first}"
        found[queue.name] = Value(value=minutes, text=text)
    return found
