"""`gpu-health`: what is thought of a GPU: healthy 0, suspect 1, failed 2."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words
from corral.core.model import GpuHealth

VALUES = {GpuHealth.HEALTHY: 0.0, GpuHealth.SUSPECT: 1.0, GpuHealth.FAILED: 2.0}


def measure(facts: Facts) -> dict[str, Value]:
    found = {}
    for gpu in facts.gpus:
        why = f": {gpu.evidence}" if gpu.evidence and gpu.health is not GpuHealth.HEALTHY else ""
        is_so = "has failed" if gpu.health is GpuHealth.FAILED else f"is {gpu.health}"
        found[gpu.id] = Value(
            value=VALUES[gpu.health], text=f"{gpu_words(gpu)} {is_so}{why}", jobs=gpu.jobs, node=gpu.node
        )
    return found
