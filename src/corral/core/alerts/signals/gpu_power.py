"""`gpu-power`: what a GPU draws of the power it may draw."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words, of_reading


def measure(facts: Facts) -> dict[str, Value]:
    return of_reading(
        facts,
        lambda gpu: None if gpu.power_part is None else gpu.power_part * 100,
        lambda gpu, value: f"{gpu_words(gpu)} draws {value:.0f} % of its power limit",
    )
