"""`gpu-utilization`: how busy a GPU is."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words, of_reading


def measure(facts: Facts) -> dict[str, Value]:
    return of_reading(
        facts,
        lambda gpu: None if gpu.utilization is None else gpu.utilization * 100,
        lambda gpu, value: f"{gpu_words(gpu)} is {value:.0f} % busy",
    )
