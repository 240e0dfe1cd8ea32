"""`gpu-temperature`: how hot a GPU is."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label


def read(gpu: GpuFact) -> float | None:
    return gpu.temperature_celsius


def describe(gpu: GpuFact, value: float) -> Finding:
    return about_gpu(gpu, f"{gpu_label(gpu)} is at {value:.0f} °C")
