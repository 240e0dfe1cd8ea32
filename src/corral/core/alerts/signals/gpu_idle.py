"""`gpu-idle`: minutes without use while a job holds the GPU."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words


def measure(facts: Facts) -> dict[str, Value]:
    found = {}
    for gpu in facts.gpus:
        if gpu.idle_seconds is not None:
            minutes = gpu.idle_seconds / 60
            # Of a shared GPU it cannot be said whose job does nothing.
            owner = gpu.users[0] if len(gpu.users) == 1 else ""
            found[gpu.id] = Value(
                value=minutes,
                text=f"{gpu_words(gpu)} has done nothing for {minutes:.0f} min",
                owner=owner,
                jobs=gpu.jobs,
                node=gpu.node,
            )
    return found
