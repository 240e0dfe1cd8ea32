"""`volume-full`: the used part of a volume. Its owner may see the alert."""

from __future__ import annotations

from corral.core.alerts.facts import VolumeFact
from corral.core.alerts.signal import Finding
from corral.core.quantities import format_bytes


def read(volume: VolumeFact) -> float | None:
    if volume.used_bytes is None or not volume.size_bytes:
        return None
    return 100 * volume.used_bytes / volume.size_bytes


def describe(volume: VolumeFact, value: float) -> Finding:
    numbers = f"{format_bytes(volume.used_bytes or 0)} of {format_bytes(volume.size_bytes)}"
    text = f"volume {volume.name} ({volume.id}) of {volume.owner} is {value:.0f} % full: {numbers}"
    return Finding(text=text, owner=volume.owner)
