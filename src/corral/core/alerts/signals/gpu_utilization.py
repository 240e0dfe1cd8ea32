"""`gpu-utilization`: how busy a GPU is."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label


def read(gpu: GpuFact) -> float | None:
    return None if gpu.utilization is None else gpu.utilization * 100


def describe(gpu: GpuFact, value: float) -> Finding:
    return about_gpu(gpu, f"{gpu_label(gpu)} is {value:.0f} % busy")
