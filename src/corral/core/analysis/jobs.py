"""Attempts of the period, put together by the job that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corral.core.analysis.model import HOUR, UsageLine


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredJob:
    """What was measured of one job, over all attempts of the period."""

    lines: tuple[UsageLine, ...]

    @property
    def last(self) -> UsageLine:
        return self.lines[-1]

    @property
    def gpu_hours(self) -> float:
        return sum(line.measured.gpu_seconds for line in self.lines) / HOUR

    @property
    def busy_gpu_hours(self) -> float:
        return sum(line.measured.busy_gpu_seconds for line in self.lines) / HOUR

    @property
    def utilization(self) -> float:
        return self.busy_gpu_hours / self.gpu_hours if self.gpu_hours else 0.0


def measured_jobs(lines: Iterable[UsageLine], least_gpu_hours: float) -> list[MeasuredJob]:
    """Those of which enough was measured."""
    by_job: dict[str, list[UsageLine]] = {}
    for line in sorted(lines, key=lambda line: line.planned_at):
        if line.measured.gpu_seconds > 0:
            by_job.setdefault(line.job_id, []).append(line)
    jobs = [MeasuredJob(lines=tuple(found)) for found in by_job.values()]
    return [job for job in jobs if job.gpu_hours >= least_gpu_hours]
