"""`gpu-memory`: how full a GPU's memory is."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label


def read(gpu: GpuFact) -> float | None:
    return None if gpu.memory_part is None else gpu.memory_part * 100


def describe(gpu: GpuFact, value: float) -> Finding:
    return about_gpu(gpu, f"the memory of {gpu_label(gpu)} is {value:.0f} % full")
