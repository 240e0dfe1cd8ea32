"""`gpu-temperature`: how hot a GPU is."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words, of_reading


def measure(facts: Facts) -> dict[str, Value]:
    return of_reading(
        facts,
        lambda gpu: gpu.temperature_celsius,
        lambda gpu, value: f"{gpu_words(gpu)} is at {value:.0f} °C",
    )
