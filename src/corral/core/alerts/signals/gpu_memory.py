"""`gpu-memory`: how full a GPU's memory is."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words, of_reading


def measure(facts: Facts) -> dict[str, Value]:
    return of_reading(
        facts,
        lambda gpu: None if gpu.memory_part is None else gpu.memory_part * 100,
        lambda gpu, value: f"the memory of {gpu_words(gpu)} is {value:.0f} % full",
    )
