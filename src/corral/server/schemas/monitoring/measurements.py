"""API schemas: measurements: series over time, and what jobs used."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from corral.control.monitoring.attempt_usage import UsageTotals
from corral.control.monitoring.series import Series, Span
from corral.control.ports import CLUSTER_METRICS, GPU_METRICS, NODE_METRICS, Metric
from corral.server.schemas.base import Number, View, number, rfc3339

#: Units by the end of a metric's name.
_UNITS = ("bytes", "celsius", "watts", "joules", "mhz", "seconds")
_RATES = frozenset({Metric.NODE_NETWORK_RECEIVE, Metric.NODE_NETWORK_SEND})
_PARTS = frozenset(
    {Metric.GPU_UTILIZATION, Metric.GPU_THROTTLED, Metric.NODE_CPU}
    | {Metric.CLUSTER_ALLOCATION, Metric.CLUSTER_UTILIZATION}
)


def short_name(metric: Metric) -> str:
    """`gpu.power_watts` is `power` under /gpus, because the unit is a field of its own. Metrics of queues keep their
    noun."""
    noun, _, name = metric.partition(".")
    for unit in _UNITS:
        name = name.removesuffix(f"_{unit}")
    return f"queue_{name}" if noun == "queue" else name


def unit_of(metric: Metric) -> str:
    """ "ratio" is 0 … 1; "count" has no unit."""
    if metric in _PARTS:
        return "ratio"
    unit = next((unit for unit in _UNITS if metric.endswith(f"_{unit}")), "count")
    return "bytes_per_second" if metric in _RATES else unit


def by_short_name(metrics: Iterable[Metric]) -> dict[str, Metric]:
    return {short_name(metric): metric for metric in metrics}


OF_GPUS = by_short_name(GPU_METRICS)
OF_NODES = by_short_name(NODE_METRICS)
OF_EVERYTHING = by_short_name((*CLUSTER_METRICS, Metric.QUEUE_LENGTH, Metric.QUEUE_WAIT))


class PointView(View):
    at: str = Field(description="The beginning of the step.")
    mean: float
    least: float
    most: float
    count: int = Field(description="Number of readings in the step. A step without readings has no point.")


class SeriesView(View):
    metric: str
    subject: str
    unit: str
    points: list[PointView]


class MetricsView(View):
    since: str
    until: str
    step_seconds: Number
    series: list[SeriesView]


class UsageView(View):
    """Resources that were held and used so far."""

    gpu_hours: float
    measured_gpu_hours: float = Field(description="Share of the GPU-hours that have readings.")
    utilization: float | None = Field(
        description="Mean utilisation of the GPUs while it was measured; null if it was never measured."
    )
    idle_gpu_hours: float
    energy_kwh: float
    memory_peak_bytes: int = Field(description="Highest memory use of a single GPU.")


class AttemptUsageView(UsageView):
    attempt_id: str
    planned_at: str
    ended_at: str | None


class JobMetricsView(MetricsView):
    totals: UsageView
    attempts: list[AttemptUsageView]


def usage_view(totals: UsageTotals) -> UsageView:
    return UsageView(
        gpu_hours=totals.gpu_hours,
        measured_gpu_hours=totals.measured_gpu_hours,
        utilization=totals.utilization,
        idle_gpu_hours=totals.idle_gpu_hours,
        energy_kwh=totals.energy_kwh,
        memory_peak_bytes=totals.memory_peak_bytes,
    )


def metrics_view(span: Span, series: Iterable[Series]) -> MetricsView:
    return MetricsView(
        since=rfc3339(span.since),
        until=rfc3339(span.until),
        step_seconds=number(span.step_seconds),
        series=[series_view(line) for line in series],
    )


def series_view(series: Series) -> SeriesView:
    return SeriesView(
        metric=short_name(series.metric),
        subject=series.subject,
        unit=unit_of(series.metric),
        points=[
            PointView(at=rfc3339(point.at), mean=point.mean, least=point.least, most=point.most, count=point.count)
            for point in series.points
        ],
    )
