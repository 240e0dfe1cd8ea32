"""Time, job directories and readings, as the control layer needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""


class Workspace(Protocol):
    """A directory for each job, where the job can read what it is handed and keep what it must find again."""

    def env(self, job_id: str) -> Mapping[str, str]:
        """Environment that tells a job where its directories are; they exist when this returns. Quick."""

    def put_once(self, job_id: str, name: str, value: Mapping[str, Any]) -> bool:
        """Leave a JSON file for the job, whole or not at all; False if it is there already."""

    def remove(self, job_ids: Sequence[str]) -> None:
        """With everything in it. Unknown jobs are left alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuReading:
    """One GPU at one moment; None where the device does not tell."""

    gpu_id: str
    at: float
    utilization: float | None = None  # 0 … 1
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    energy_joules: float | None = None


class Collector(Protocol):
    """Reads GPUs. Slow or failing devices must not raise: they are left out of the answer."""

    def collect(self, at: float) -> Sequence[GpuReading]: ...
