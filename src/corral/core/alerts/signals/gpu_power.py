"""`gpu-power` and `gpu-power-watts`: the power that a GPU draws, as a part of its power limit and in watts."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label


def read(gpu: GpuFact) -> float | None:
    return None if gpu.power_part is None else gpu.power_part * 100


def describe(gpu: GpuFact, value: float) -> Finding:
    return about_gpu(gpu, f"{gpu_label(gpu)} draws {value:.0f} % of its power limit")


def read_watts(gpu: GpuFact) -> float | None:
    return gpu.power_watts


def describe_watts(gpu: GpuFact, value: float) -> Finding:
    return about_gpu(gpu, f"{gpu_label(gpu)} draws {value:.0f} W")
