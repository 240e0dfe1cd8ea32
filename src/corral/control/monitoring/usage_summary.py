"""GPU-hours and energy of a span of time, by user, group, queue and GPU model.

GPU-hours are exact: of an attempt that crosses the border of the span only the time within it counts. What was
measured (use, idleness, energy) is kept as one sum per attempt; of an attempt that crosses the border the same part
of it is counted as of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from corral.control.records import UsageRecord

SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3_600_000.0


class Dimension(StrEnum):
    USER = "user"
    GROUP = "group"
    QUEUE = "queue"
    MODEL = "model"


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuHours:
    """The GPU hours held and used within a span, summed for one key."""

    #: key of the dimension; "": in no group, or without GPUs
    key: str
    gpu_hours: float = 0.0
    #: the part of them that was measured, and of that part: utilisation times time, and the time without any use
    measured_gpu_hours: float = 0.0
    busy_gpu_hours: float = 0.0
    idle_gpu_hours: float = 0.0
    energy_kwh: float = 0.0
    #: different jobs that held something
    jobs: int = 0

    @property
    def utilization(self) -> float | None:
        """The mean utilization; None if nothing was measured."""
        return self.busy_gpu_hours / self.measured_gpu_hours if self.measured_gpu_hours else None


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageSummary:
    since: float
    until: float
    total: GpuHours
    by_user: tuple[GpuHours, ...]
    by_group: tuple[GpuHours, ...]
    by_queue: tuple[GpuHours, ...]
    by_model: tuple[GpuHours, ...]


KEYS: dict[Dimension, Callable[[UsageRecord], str]] = {
    Dimension.USER: lambda record: record.user,
    Dimension.GROUP: lambda record: record.group or "",
    Dimension.QUEUE: lambda record: record.queue,
    Dimension.MODEL: lambda record: record.model,
}


def summarize_usage(records: Iterable[UsageRecord], since: float, until: float, now: float) -> UsageSummary:
    """All dimensions of the span at once, and everything together. `now` is when the records were read."""
    records = list(records)
    totals = _added_up(records, since, until, now, lambda _: "")
    return UsageSummary(
        since=since,
        until=until,
        total=totals[0] if totals else GpuHours(key=""),
        by_user=gpu_hours_by(Dimension.USER, records, since, until, now),
        by_group=gpu_hours_by(Dimension.GROUP, records, since, until, now),
        by_queue=gpu_hours_by(Dimension.QUEUE, records, since, until, now),
        by_model=gpu_hours_by(Dimension.MODEL, records, since, until, now),
    )


def gpu_hours_by(
    dimension: Dimension, records: Iterable[UsageRecord], since: float, until: float, now: float
) -> tuple[GpuHours, ...]:
    """The most GPU-hours first. Models leave out what has no GPUs."""
    key = KEYS[dimension]
    if dimension is Dimension.MODEL:
        records = [record for record in records if record.model]
    return tuple(_added_up(records, since, until, now, key))


def part_within(record: UsageRecord, since: float, until: float, now: float) -> float:
    """The part of an attempt's time, so far, that lies within a span: 0 … 1."""
    end = now if record.ended_at is None else record.ended_at
    lasted = end - record.planned_at
    if lasted <= 0:
        return 1.0 if since <= record.planned_at < until else 0.0
    within = min(end, until) - max(record.planned_at, since)
    return min(1.0, max(0.0, within / lasted))


def gpu_hours_of(record: UsageRecord, since: float, until: float, now: float) -> GpuHours:
    """The GPU hours of one attempt within a span; the key is the attempt's id."""
    part, measured = part_within(record, since, until, now), record.measured
    return GpuHours(
        key=record.attempt_id,
        gpu_hours=record.gpu_seconds(since, min(until, now)) / SECONDS_PER_HOUR,
        measured_gpu_hours=part * measured.gpu_seconds / SECONDS_PER_HOUR,
        busy_gpu_hours=part * measured.busy_gpu_seconds / SECONDS_PER_HOUR,
        idle_gpu_hours=part * measured.idle_gpu_seconds / SECONDS_PER_HOUR,
        energy_kwh=part * measured.energy_joules / JOULES_PER_KWH,
        jobs=1,
    )


@dataclass(kw_only=True, slots=True)
class _Sum:
    parts: list[GpuHours]
    jobs: set[str]


def _added_up(
    records: Iterable[UsageRecord], since: float, until: float, now: float, key: Callable[[UsageRecord], str]
) -> list[GpuHours]:
    sums: dict[str, _Sum] = {}
    for record in records:
        if not _is_within(record, since, until):
            continue
        found = sums.setdefault(key(record), _Sum(parts=[], jobs=set()))
        found.parts.append(gpu_hours_of(record, since, until, now))
        found.jobs.add(record.job_id)
    rows = [
        GpuHours(
            key=name,
            gpu_hours=sum(part.gpu_hours for part in found.parts),
            measured_gpu_hours=sum(part.measured_gpu_hours for part in found.parts),
            busy_gpu_hours=sum(part.busy_gpu_hours for part in found.parts),
            idle_gpu_hours=sum(part.idle_gpu_hours for part in found.parts),
            energy_kwh=sum(part.energy_kwh for part in found.parts),
            jobs=len(found.jobs),
        )
        for name, found in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row.gpu_hours, row.key))


def _is_within(record: UsageRecord, since: float, until: float) -> bool:
    """Whether the attempt held resources within the span, by the rule of `UsageTable.between`."""
    begins = since <= record.planned_at
    return record.planned_at < until and (begins or record.ended_at is None or record.ended_at > since)
