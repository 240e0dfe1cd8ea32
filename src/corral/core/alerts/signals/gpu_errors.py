"""`gpu-errors`: errors that a GPU reported in the last minutes (XID, uncorrectable memory errors, row remapping)."""

from __future__ import annotations

from corral.core.alerts.facts import GpuFact
from corral.core.alerts.signal import Finding, about_gpu, gpu_label

#: The number of errors that are named, the latest ones.
NAMED = 5


def read(gpu: GpuFact) -> float | None:
    return None if gpu.errors is None else float(len(gpu.errors))


def describe(gpu: GpuFact, value: float) -> Finding:
    named = ", ".join(dict.fromkeys((gpu.errors or ())[-NAMED:]))
    return about_gpu(gpu, f"{gpu_label(gpu)} reported {named or 'nothing lately'}")
