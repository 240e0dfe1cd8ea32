"""What was measured and what follows from it, as the server shows it."""

from __future__ import annotations

from typing import Any, TypedDict

from corral.client.views.jobs import AllocationView, UsageView


class ReportView(TypedDict):
    id: str
    title: str
    period: str
    since: str
    until: str
    created_at: str
    created_by: str
    schedule: str | None
    state: str
    error: str
    formats: list[str]


class ReportScheduleView(TypedDict):
    name: str
    period: str
    hour: int
    weekday: int
    channels: list[str]
    enabled: bool
    created_at: str
    last_until: str | None
    next_run: str | None


class PointView(TypedDict):
    at: str
    mean: float
    least: float
    most: float
    count: int


class SeriesView(TypedDict):
    metric: str
    subject: str
    unit: str
    points: list[PointView]


class MetricsView(TypedDict):
    since: str
    until: str
    step_seconds: float
    series: list[SeriesView]


class AttemptUsageView(UsageView):
    attempt_id: str
    planned_at: str
    ended_at: str | None


class JobMetricsView(MetricsView):
    totals: UsageView
    attempts: list[AttemptUsageView]


class FindingView(TypedDict):
    kind: str
    severity: str
    subject: str
    title: str
    evidence: dict[str, Any]
    text: str
    proposal: str


class GpuHoursView(TypedDict):
    key: str
    gpu_hours: float
    measured_gpu_hours: float
    busy_gpu_hours: float
    idle_gpu_hours: float
    energy_kwh: float
    utilization: float | None
    jobs: int


class UsageBreakdownView(TypedDict):
    total: GpuHoursView
    by_user: list[GpuHoursView]
    by_group: list[GpuHoursView]
    by_queue: list[GpuHoursView]
    by_model: list[GpuHoursView]


class AnalysisView(TypedDict):
    since: str
    until: str
    findings: list[FindingView]
    usage: UsageBreakdownView
    notes: list[str]


class MoveView(TypedDict):
    job: str
    name: str
    user: str
    from_node: str
    to_node: str
    before: AllocationView
    after: AllocationView
    lost_gpu_hours: float


class FreedNodeView(TypedDict):
    node: str
    pool: str
    model: str
    gpus: list[str]
    free_before: int


class DefragmentationView(TypedDict):
    moves: list[MoveView]
    frees: list[FreedNodeView]
    helps: list[str]
    lost_gpu_hours: float
