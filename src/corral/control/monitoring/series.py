"""Time series of measurements for one request: which span, in which steps, of which GPUs.

A job's series come from the GPUs of its attempts, each over the time in which it held them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corral.control.ports import History, Metric, Point
from corral.control.records import UsageRecord

#: About so many points make a chart.
CHART_POINTS = 300
#: More than a chart needs, and as many as an answer may have of one series.
MAX_POINTS = 5000
#: Steps that people can read off an axis, in seconds; above them whole days.
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
DAY = 86_400.0

#: What is added up over a job's GPUs; of everything else the mean is shown.
SUMMED = frozenset({Metric.GPU_POWER, Metric.GPU_MEMORY_USED, Metric.GPU_ENERGY})


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    since: float
    until: float
    step_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    metric: Metric
    #: a GPU, a node, a queue, a job, or the whole installation
    subject: str
    points: Sequence[Point]


def chosen_step(since: float, until: float, least: float) -> float:
    """The smallest readable step that gives no more points than a chart needs, and not below what is measured."""
    wanted = max((until - since) / CHART_POINTS, least)
    for step in STEPS:
        if step >= wanted:
            return float(step)
    return -(-wanted // DAY) * DAY


def series_of(history: History, metrics: Iterable[Metric], subjects: Sequence[str] | None, span: Span) -> list[Series]:
    """Metric by metric, subject by subject; of what was never measured there is an empty series."""
    found: list[Series] = []
    for metric in metrics:
        by_subject = history.series(metric, subjects, span.since, span.until, span.step_seconds)
        shown = sorted(by_subject) if subjects is None else subjects
        found += [Series(metric=metric, subject=subject, points=by_subject.get(subject, ())) for subject in shown]
    return found


def job_series(
    history: History,
    job_id: str,
    metrics: Iterable[Metric],
    attempts: Sequence[UsageRecord],
    span: Span,
    *,
    per_gpu: bool = False,
) -> list[Series]:
    """The series of each GPU while the job held it, or one series over all of them."""
    found: list[Series] = []
    for metric in metrics:
        by_subject: dict[str, list[Point]] = {}
        for attempt in attempts:
            points = _of_attempt(history, metric, attempt, span)
            if not per_gpu:
                points = {job_id: _together(points.values(), summed=metric in SUMMED)}
            for subject, read in points.items():
                by_subject.setdefault(subject, []).extend(read)
        for subject in sorted(by_subject) if per_gpu else [job_id]:
            # One step may have parts of two attempts.
            merged = _together([by_subject.get(subject, ())], summed=False)
            found.append(Series(metric=metric, subject=subject, points=merged))
    return found


def _of_attempt(history: History, metric: Metric, attempt: UsageRecord, span: Span) -> dict[str, Sequence[Point]]:
    since = max(span.since, attempt.planned_at)
    until = span.until if attempt.ended_at is None else min(span.until, attempt.ended_at)
    if not attempt.gpu_ids or since >= until:
        return {}
    read = history.series(metric, attempt.gpu_ids, since, until, span.step_seconds)
    return {gpu: read.get(gpu, ()) for gpu in attempt.gpu_ids}


def _together(series: Iterable[Sequence[Point]], *, summed: bool) -> list[Point]:
    at_once: dict[float, list[Point]] = {}
    for points in series:
        for point in points:
            at_once.setdefault(point.at, []).append(point)
    return [_summed(at_once[at]) if summed else _mean(at_once[at]) for at in sorted(at_once)]


def _summed(points: Sequence[Point]) -> Point:
    return Point(
        at=points[0].at,
        mean=sum(point.mean for point in points),
        least=sum(point.least for point in points),
        most=sum(point.most for point in points),
        count=sum(point.count for point in points),
    )


def _mean(points: Sequence[Point]) -> Point:
    count = sum(point.count for point in points)
    return Point(
        at=points[0].at,
        mean=sum(point.mean * point.count for point in points) / count,
        least=min(point.least for point in points),
        most=max(point.most for point in points),
        count=count,
    )
