"""`gpu-health`: what is thought of a GPU: healthy 0, suspect 1, failed 2."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label
from corral.core.model import GpuHealth

VALUES = {GpuHealth.HEALTHY: 0.0, GpuHealth.SUSPECT: 1.0, GpuHealth.FAILED: 2.0}


def read(gpu: GpuFact) -> float | None:
    return VALUES[gpu.health]


def describe(gpu: GpuFact, value: float) -> Finding:
    why = f": {gpu.evidence}" if gpu.evidence and value else ""
    is_so = "has failed" if gpu.health is GpuHealth.FAILED else f"is {gpu.health}"
    return about_gpu(gpu, f"{gpu_label(gpu)} {is_so}{why}")
