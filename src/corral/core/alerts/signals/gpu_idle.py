"""`gpu-idle`: minutes without use while a job holds the GPU."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label


def read(gpu: GpuFact) -> float | None:
    return None if gpu.idle_seconds is None else gpu.idle_seconds / 60


def describe(gpu: GpuFact, value: float) -> Finding:
    # Of a shared GPU it cannot be said whose job does nothing.
    owner = gpu.users[0] if len(gpu.users) == 1 else ""
    return about_gpu(gpu, f"{gpu_label(gpu)} has done nothing for {value:.0f} min", owner=owner)
