"""The two ratios of the installation and related totals, computed in one place for views, metrics and history."""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.fleet.live_fleet import GpuCounts
from corral.core.model import WHOLE
from corral.telemetry.reading_sums import GpuSums


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
    #: temperature of the hottest GPU
    temperature_celsius: float | None
    #: GPUs without a fresh reading
    unread: int


def totals_of(counts: GpuCounts, asked_milli: int, read: GpuSums) -> Totals:
    """`read` is about the same GPUs as `counts`."""
    gpus = counts.gpus
    utilization = read.utilization if counts.held_milli else 0.0
    return Totals(
        gpus=gpus,
        held=counts.held_milli / WHOLE,
        allocation=asked_milli / WHOLE / gpus if gpus else None,
        utilization=utilization / gpus if gpus and utilization is not None else None,
        sm_activity=read.sm_activity,
        power_watts=read.power_watts,
        temperature_celsius=read.temperature_celsius,
        unread=gpus - read.read,
    )
