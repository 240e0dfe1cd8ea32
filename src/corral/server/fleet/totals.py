"""The two ratios of the installation and related totals, computed in one place for views, metrics and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corral.control.ports import GpuReading
from corral.control.scheduling.views import GpuView
from corral.core.model import WHOLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """A value without readings is None, not zero."""

    gpus: int
    #: GPUs that jobs hold; shares are added up
    held: float
    #: share of all GPUs that unfinished jobs request
    allocation: float | None
    #: measured use of held GPUs, as a share of all GPUs
    utilization: float | None
    #: mean activity of the SMs of held GPUs that report it
    sm_activity: float | None
    power_watts: float | None
    #: of the hottest GPU
    temperature_celsius: float | None
    #: GPUs without a fresh reading
    unread: int


def totals_of(gpus: Sequence[GpuView], asked_milli: int, readings: Mapping[str, GpuReading]) -> Totals:
    """`readings` are the fresh ones, by GPU."""
    known = [reading for gpu in gpus if (reading := readings.get(gpu.gpu.id)) is not None and not reading.lost]
    held = {gpu.gpu.id for gpu in gpus if gpu.held_milli}
    used = [item.utilization for item in known if item.gpu_id in held and item.utilization is not None]
    active = [item.sm_activity for item in known if item.gpu_id in held and item.sm_activity is not None]
    watts = [item.power_watts for item in known if item.power_watts is not None]
    celsius = [item.temperature_celsius for item in known if item.temperature_celsius is not None]
    return Totals(
        gpus=len(gpus),
        held=sum(gpu.held_milli for gpu in gpus) / WHOLE,
        allocation=asked_milli / WHOLE / len(gpus) if gpus else None,
        utilization=sum(used) / len(gpus) if gpus and (used or not held) else None,
        sm_activity=sum(active) / len(active) if active else None,
        power_watts=sum(watts) if watts else None,
        temperature_celsius=max(celsius, default=None),
        unread=len(gpus) - len(known),
    )
