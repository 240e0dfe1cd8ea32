"""Measurements and their history.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import TypedDict

from corral.client.views.jobs import UsageView


class AttemptUsageView(TypedDict):
    gpu_hours: float
    #: The part of the GPU-hours of which readings tell.
    measured_gpu_hours: float
    #: Mean use of the GPUs while it was measured; null if it never was.
    utilization: float | None
    idle_gpu_hours: float
    energy_kwh: float
    #: The most that one of its GPUs had in use.
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
    #: Readings behind it. A step without any has no point.
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
