"""The device was present and does not answer any more."""

from __future__ import annotations

from corral.core.monitoring.health.model import FINE, Finding, Sight, Weight

ADVICE = (
    "Look for it with nvidia-smi or amd-smi and in the kernel's log. Restart the node; if it does not come back, check "
    "its seat and its power, or replace it."
)
_LOST = Finding(weight=Weight.BAD, text="the device does not answer any more", advice=ADVICE)


def look(sight: Sight) -> Finding:
    return _LOST if sight.reading.lost else FINE
