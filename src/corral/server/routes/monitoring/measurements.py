"""Measurements of GPUs, nodes, jobs, and of the whole installation over time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query

from corral.control.errors import NotFound
from corral.control.live.state import State
from corral.control.monitoring.attempt_usage import usage_totals
from corral.control.monitoring.series import MAX_POINTS, Series, Span, chosen_step, job_series, series_of
from corral.control.ports import CLUSTER, Metric, Transaction
from corral.control.records import JobRecord, UsageRecord
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.context import ServerContext
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import find_job
from corral.server.schemas.base import parse_time, rfc3339, rfc3339_or_none
from corral.server.schemas.monitoring.measurements import (
    OF_EVERYTHING,
    OF_GPUS,
    OF_NODES,
    AttemptUsageView,
    JobMetricsView,
    MetricsView,
    metrics_view,
    usage_view,
)

router = resource_router("", "measurements")

HOUR = 3600.0
DAY = 86_400.0
#: The beginning of the year 9999: later moments have no RFC 3339 form in every time zone.
LATEST = 253_370_764_800.0
#: Default metrics of a job.
USUAL_OF_JOBS = ("utilization", "memory_used", "power", "temperature")

Metrics = Annotated[
    list[str],
    Query(max_length=32, description="Metrics, such as utilization; may be given several times; default: all."),
]
Since = Annotated[str | None, Query(max_length=64, description="RFC 3339.")]
Until = Annotated[str | None, Query(max_length=64, description="RFC 3339; default: now.")]
Step = Annotated[
    float | None, Query(ge=1, le=366 * DAY, description="Seconds per point; default: suitable for a chart.")
]


@router.get("/gpus/{gpu:path}/metrics", operation_id="get_gpu_metrics", responses=problems(404, 503))
async def get_gpu_metrics(
    gpu: str,
    caller: AnyCaller,
    context: Context,
    metric: Metrics = [],  # noqa: B006 - FastAPI copies defaults
    since: Since = None,
    until: Until = None,
    step: Step = None,
) -> MetricsView:
    """Readings of one GPU over a time, in steps that fit the time."""
    wanted = _metrics(OF_GPUS, metric)
    span = _span(context, since, until, step, usual=HOUR)
    if not await context.inspect(_has_gpu, gpu):
        raise NotFound(f"there is no GPU {gpu!r}", field="gpu")
    return metrics_view(span, await asyncio.to_thread(series_of, context.history, wanted, [gpu], span))


@router.get("/nodes/{node}/metrics", operation_id="get_node_metrics", responses=problems(404, 503))
async def get_node_metrics(
    node: str,
    caller: AnyCaller,
    context: Context,
    metric: Metrics = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    step: Step = None,
) -> MetricsView:
    """CPU, memory, disk and network of a node. Its GPUs have metrics of their own."""
    wanted = _metrics(OF_NODES, metric)
    span = _span(context, since, until, step, usual=HOUR)
    if not await context.inspect(lambda state: node in state.snapshot.nodes):
        raise NotFound(f"there is no node {node!r}", field="node")
    return metrics_view(span, await asyncio.to_thread(series_of, context.history, wanted, [node], span))


@router.get("/jobs/{job}/metrics", operation_id="get_job_metrics", responses=problems(404, 503))
async def get_job_metrics(
    job: str,
    caller: AnyCaller,
    context: Context,
    metric: Metrics = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    step: Step = None,
    per_gpu: Annotated[bool, Query(description="One series per GPU instead of one for all.")] = False,
) -> JobMetricsView:
    """Readings of the job's GPUs while it held them, over all its attempts, and its total use. For all GPUs together,
    power and memory are sums; all other values are means."""
    wanted = _metrics(OF_GPUS, metric or USUAL_OF_JOBS)

    def read(tables: Transaction) -> tuple[JobRecord, list[UsageRecord]]:
        record = find_job(tables, caller, job)
        return record, tables.usage.of_job(record.job.id)

    record, attempts = await context.read(read)
    now = context.clock.now()
    begin = attempts[0].planned_at if attempts else record.job.created_at
    end = _end(attempts, now)
    span = _span(context, since, until, step, usual=max(1.0, end - begin), end=max(end, begin + 1.0))
    series: Sequence[Series] = await asyncio.to_thread(
        job_series, context.history, record.job.id, wanted, attempts, span, per_gpu=per_gpu
    )
    shown = metrics_view(span, series)
    return JobMetricsView(
        since=shown.since,
        until=shown.until,
        step_seconds=shown.step_seconds,
        series=shown.series,
        totals=usage_view(usage_totals(attempts, now)),
        attempts=[_attempt_view(attempt, now) for attempt in attempts],
    )


@router.get("/trends", operation_id="get_trends", responses=problems(503))
async def get_trends(
    caller: AnyCaller,
    context: Context,
    metric: Metrics = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    step: Step = None,
) -> MetricsView:
    """The whole installation over time: allocation, utilisation, power, jobs; and each queue's length and wait."""
    wanted = _metrics(OF_EVERYTHING, metric)
    span = _span(context, since, until, step, usual=DAY)
    whole = [name for name in wanted if name.startswith("cluster.")]
    queues = [name for name in wanted if not name.startswith("cluster.")]

    def read() -> list[Series]:
        return [
            *series_of(context.history, whole, [CLUSTER], span),
            *series_of(context.history, queues, None, span),
        ]

    return metrics_view(span, await asyncio.to_thread(read))


def _metrics(known: Mapping[str, Metric], names: Sequence[str]) -> list[Metric]:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise invalid_field("metric", f"there is no {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names or known)]


def _span(
    context: ServerContext,
    since: str | None,
    until: str | None,
    step: float | None,
    *,
    usual: float,
    end: float | None = None,
) -> Span:
    """The requested span, or the default one up to now."""
    last = _time("until", until) if until is not None else end or context.clock.now()
    first = _time("since", since) if since is not None else last - usual
    if first >= last:
        raise invalid_field("since", "must be before until")
    if step is None:
        step = chosen_step(first, last, least=context.settings.monitoring.interval_seconds)
    elif (last - first) / step > MAX_POINTS:
        raise invalid_field("step", f"would give more than {MAX_POINTS} points; take a longer one")
    return Span(since=first, until=last, step_seconds=step)


def _time(field: str, text: str) -> float:
    try:
        moment = parse_time(text)
    except (ValueError, OverflowError) as error:
        raise invalid_field(field, str(error)) from None
    if not 0 <= moment <= LATEST:
        raise invalid_field(field, "must be between the years 1970 and 9999")
    return moment


def _end(attempts: Sequence[UsageRecord], now: float) -> float:
    ends = [now if attempt.ended_at is None else attempt.ended_at for attempt in attempts]
    return max(ends, default=now)


def _attempt_view(attempt: UsageRecord, now: float) -> AttemptUsageView:
    return AttemptUsageView(
        attempt_id=attempt.attempt_id,
        planned_at=rfc3339(attempt.planned_at),
        ended_at=rfc3339_or_none(attempt.ended_at),
        **usage_view(usage_totals([attempt], now)).model_dump(),
    )


def _has_gpu(state: State, gpu_id: str) -> bool:
    return any(gpu.id == gpu_id for node in state.snapshot.nodes.values() for gpu in node.gpus)
