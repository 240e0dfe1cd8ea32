"""Measured use of attempts: stored with their allocations, and summed for views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corral.control.live.unit_of_work import Work
from corral.control.monitoring.usage_summary import JOULES_PER_KWH, SECONDS_PER_HOUR
from corral.control.ports import GpuReading
from corral.control.records import UsageRecord
from corral.core.monitoring.attempt_usage import Measured, Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageTotals:
    """The resources that some attempts held and used together so far."""

    gpu_hours: float = 0.0
    measured_gpu_hours: float = 0.0
    idle_gpu_hours: float = 0.0
    energy_kwh: float = 0.0
    memory_peak_bytes: int = 0
    #: mean use of its GPUs while it was measured; None when it never was
    utilization: float | None = None


def save_measured(work: Work, measured: Mapping[str, Measured]) -> None:
    work.tx.usage.save_measured(measured)


def sample_of(reading: GpuReading) -> Sample:
    return Sample(
        gpu_id=reading.gpu_id,
        at=reading.at,
        utilization=reading.utilization,
        memory_used_bytes=reading.memory_used_bytes,
        power_watts=reading.power_watts,
        energy_joules=reading.energy_joules,
    )


def usage_totals(records: Iterable[UsageRecord], now: float) -> UsageTotals:
    records = list(records)
    seconds = sum(record.measured.gpu_seconds for record in records)
    busy = sum(record.measured.busy_gpu_seconds for record in records)
    return UsageTotals(
        gpu_hours=sum(record.gpu_seconds(record.planned_at, now) for record in records) / SECONDS_PER_HOUR,
        measured_gpu_hours=seconds / SECONDS_PER_HOUR,
        idle_gpu_hours=sum(record.measured.idle_gpu_seconds for record in records) / SECONDS_PER_HOUR,
        energy_kwh=sum(record.measured.energy_joules for record in records) / JOULES_PER_KWH,
        memory_peak_bytes=max((record.measured.memory_peak_bytes for record in records), default=0),
        utilization=busy / seconds if seconds else None,
    )
