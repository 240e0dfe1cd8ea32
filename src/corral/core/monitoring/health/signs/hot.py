"""The GPU is hotter than the limit: it runs slower and ages; a broken fan does not repair itself."""

from __future__ import annotations

from corral.core.monitoring.health.model import FINE, UNKNOWN, Finding, Sight, Weight

ADVICE = (
    "Look at the fans, the air flow and the room; nvidia-smi -q -d TEMPERATURE or amd-smi static --limit shows the "
    "device's own limits."
)


def look(sight: Sight) -> Finding:
    temperature, limit = sight.reading.temperature_celsius, sight.rules.hot_celsius
    if temperature is None:
        return UNKNOWN
    if temperature <= limit:
        return FINE
    text = f"{temperature:.0f} °C, more than {limit:.0f} °C"
    return Finding(weight=Weight.BAD, text=text, advice=ADVICE, value=temperature)
