"""The attempts of the period, grouped by job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corral.core.reports.analysis.model import HOUR, UsageLine


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredJob:
    """The measured usage of one job over all attempts of the period."""

    last: UsageLine
    #: the attempt that was measured longest: it shows best what the job needs
    longest: UsageLine
    gpu_hours: float
    busy_gpu_hours: float

    @property
    def utilization(self) -> float:
        return self.busy_gpu_hours / self.gpu_hours

    @property
    def unused_gpu_hours(self) -> float:
        return self.gpu_hours - self.busy_gpu_hours


def measured_jobs(lines: Iterable[UsageLine], least_gpu_hours: float) -> list[MeasuredJob]:
    """Jobs with at least `least_gpu_hours` of measurements."""
    by_job: dict[str, list[UsageLine]] = {}
    for line in lines:
        if line.measured.gpu_seconds > 0:
            by_job.setdefault(line.job_id, []).append(line)
    found = []
    for attempts in by_job.values():
        seconds = sum(line.measured.gpu_seconds for line in attempts)
        # There may be very many jobs, and most of them are short.
        if seconds > 0 and seconds >= least_gpu_hours * HOUR:
            found.append(
                MeasuredJob(
                    last=max(attempts, key=lambda line: line.planned_at),
                    longest=max(attempts, key=lambda line: line.measured.gpu_seconds),
                    gpu_hours=seconds / HOUR,
                    busy_gpu_hours=sum(line.measured.busy_gpu_seconds for line in attempts) / HOUR,
                )
            )
    return found
