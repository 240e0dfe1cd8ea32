"""Measurements and their history.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import TypedDict

from corral.client.views.jobs import UsageView


class AttemptUsageView(TypedDict):
    gpu_hours: float
    #: Share of the GPU-hours that have readings.
    measured_gpu_hours: float
    #: Mean utilisation of the GPUs while it was measured; null if it was never measured.
    utilization: float | None
    idle_gpu_hours: float
    energy_kwh: float
    #: Highest memory use of a single GPU.
    memory_peak_bytes: int
    attempt_id: str
    planned_at: str
    ended_at: str | None


class PointView(TypedDict):
    #: The beginning of the step.
    at: str
    mean: float
    least: float
    most: float
    #: Number of readings in the step. A step without readings has no point.
    count: int


class SeriesView(TypedDict):
    metric: str
    subject: str
    unit: str
    points: list[PointView]


class JobMetricsView(TypedDict):
    since: str
    until: str
    step_seconds: float
    series: list[SeriesView]
    totals: UsageView
    attempts: list[AttemptUsageView]


class MetricsView(TypedDict):
    since: str
    until: str
    step_seconds: float
    series: list[SeriesView]
