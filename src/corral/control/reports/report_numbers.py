"""Computes the numbers of a report from records: pure sums over one span, and over the one before it.

What an attempt held is known to the second and is cut at the borders of the span. What was measured is known per
attempt only; of an attempt that crosses a border it counts in proportion to the time held on this side.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from corral.control.monitoring.usage_summary import KEYS, Dimension, GpuHours, gpu_hours_by, gpu_hours_of
from corral.control.ports import Point
from corral.control.records import EventRecord, UsageRecord
from corral.control.reports.report_data import (
    DAY,
    HOUR,
    AlertCount,
    Bin,
    Health,
    Mishap,
    Outcomes,
    Reason,
    ReportData,
    Share,
    Span,
    Step,
    Totals,
    Waiting,
)
from corral.control.reports.report_findings import findings
from corral.core.alerts.model import Alert, Severity
from corral.core.model import JobState

#: Names in a list of the largest; the rest is one line.
TOP = 10
#: Borders of the histogram of waiting times, in seconds.
WAIT_BORDERS = (0.0, 10.0, 60.0, 600.0, HOUR, 6 * HOUR, DAY)
#: The span before is compared only if it was seen nearly whole.
SEEN_ENOUGH = 0.95
#: Events of failures, with their descriptions.
MISHAPS = {"gpu.suspect": "suspected", "gpu.failed": "failed", "node.down": "down"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """The data of a span and of the one before it."""

    cluster: str
    title: str
    span: Span
    now: float
    usage: Sequence[UsageRecord] = ()
    submitted: int = 0
    submitted_before: int = 0
    #: how many GPUs there were, oldest first
    gpu_counts: Sequence[Point] = ()
    #: how many there are now, in case that nothing was kept
    gpus_now: int = 0
    alerts: Sequence[Alert] = ()
    events: Sequence[EventRecord] = ()


def build(material: Material) -> ReportData:
    span, now = material.span, material.now
    rows = [row for row in material.usage if _touches(row, span)]
    step_seconds = step_of(span)
    data = ReportData(
        cluster=material.cluster,
        title=material.title,
        span=span,
        made_at=now,
        totals=_totals(material, span, material.submitted),
        before=_totals_before(material),
        step_seconds=step_seconds,
        steps=_steps(material, rows, parts_of(span, step_seconds)),
        queues=_waiting_by_queue(rows, span),
        wait_bins=_wait_bins(rows, span),
        models=_shares(Dimension.MODEL, rows, span, now),
        utilization_bins=_utilization_bins(rows),
        top_users=_shares(Dimension.USER, rows, span, now),
        groups=_shares(Dimension.GROUP, rows, span, now),
        health=_health(material, span),
    )
    return replace(data, findings=findings(data))


# ---------------------------------------------------------------- sums


def total_of(rows: Sequence[UsageRecord], span: Span, now: float) -> GpuHours:
    parts = [gpu_hours_of(row, span.since, span.until, now) for row in rows]
    return GpuHours(
        key="",
        gpu_hours=math.fsum(part.gpu_hours for part in parts),
        measured_gpu_hours=math.fsum(part.measured_gpu_hours for part in parts),
        busy_gpu_hours=math.fsum(part.busy_gpu_hours for part in parts),
        idle_gpu_hours=math.fsum(part.idle_gpu_hours for part in parts),
        energy_kwh=math.fsum(part.energy_kwh for part in parts),
        jobs=len({row.job_id for row in rows}),
    )


def _shares(
    dimension: Dimension, rows: Sequence[UsageRecord], span: Span, now: float, most: int = TOP
) -> tuple[Share, ...]:
    """The largest first; what is beyond `most` becomes one line."""
    found = gpu_hours_by(dimension, rows, span.since, span.until, now)
    # A line that stands for one name would hide the name and save nothing.
    kept = found if len(found) <= most + 1 else found[:most]
    shares = tuple(Share(name=hours.key, hours=hours) for hours in kept)
    rest = {hours.key for hours in found[len(kept) :]}
    if not rest:
        return shares
    others = total_of([row for row in rows if KEYS[dimension](row) in rest], span, now)
    return (*shares, Share(name="", hours=others, stands_for=len(rest)))


def _totals(material: Material, span: Span, submitted: int) -> Totals:
    rows = [row for row in material.usage if _touches(row, span)]
    return Totals(
        available_gpu_hours=_available(material, span),
        hours=total_of(rows, span, material.now),
        users=len({row.user for row in rows}),
        outcomes=_outcomes(rows, span, material.now, submitted),
        waiting=_waiting("", [row.wait_seconds for row in rows if _planned_in(row, span)]),
        alerts_fired=sum(1 for alert in material.alerts if _fired_in(alert, span)),
    )


def _totals_before(material: Material) -> Totals | None:
    before = material.span.before()
    begin = _known_since(material)
    if begin is None or begin > before.since + (1 - SEEN_ENOUGH) * before.seconds:
        return None
    return _totals(material, before, material.submitted_before)


# ---------------------------------------------------------------- the trend


def step_of(span: Span) -> float:
    """Hours for up to three days, weeks from half a year on, else days: a chart has some thirty points at best."""
    if span.seconds <= 3 * DAY:
        return HOUR
    return DAY if span.seconds <= 184 * DAY else 7 * DAY


def parts_of(span: Span, step_seconds: float) -> list[Span]:
    """The span cut into steps from its end backwards: whole days for whole days, and only the first step can be short
    where the span is no multiple of the step."""
    count = max(1, math.ceil(span.seconds / step_seconds))
    borders = [span.since, *(span.until - number * step_seconds for number in range(count - 1, -1, -1))]
    return [Span(since=since, until=until) for since, until in pairwise(borders)]


def _steps(material: Material, rows: Iterable[UsageRecord], parts: Sequence[Span]) -> tuple[Step, ...]:
    """Each attempt is looked at only in the steps that it touches."""
    within: list[list[UsageRecord]] = [[] for _ in parts]
    begins = [part.since for part in parts]
    for row in rows:
        ended = math.inf if row.ended_at is None else row.ended_at
        first = max(0, bisect_right(begins, row.planned_at) - 1)
        for place in range(first, bisect_right(begins, ended)):
            within[place].append(row)
    return tuple(_step(material, held, part) for held, part in zip(within, parts, strict=True))


def _step(material: Material, rows: Sequence[UsageRecord], part: Span) -> Step:
    ended = [row.outcome for row in rows if _ended_in(row, part)]
    return Step(
        span=part,
        available_gpu_hours=_available(material, part),
        hours=total_of(rows, part, material.now),
        completed=ended.count(JobState.COMPLETED),
        failed=ended.count(JobState.FAILED),
        stopped=ended.count(JobState.STOPPED),
    )


def _available(material: Material, span: Span) -> float | None:
    """GPU-hours that there were. Where nothing was kept, as many GPUs as before; before anything is known, none."""
    begin = _known_since(material)
    until = min(span.until, material.now)
    if begin is None or begin >= until:
        return None
    since = max(span.since, begin)
    if not material.gpu_counts:
        return material.gpus_now * (until - since) / HOUR
    at = [point.at for point in material.gpu_counts]
    total = 0.0
    while since < until:
        place = max(0, bisect_right(at, since) - 1)
        end = min(until, at[place + 1] if place + 1 < len(at) else math.inf)
        total += material.gpu_counts[place].mean * (end - since) / HOUR
        since = end
    return total


def _known_since(material: Material) -> float | None:
    """The time since when the cluster was observed, as far as this material shows."""
    seen = [row.planned_at for row in material.usage] + [point.at for point in material.gpu_counts[:1]]
    return min(seen, default=None)


# ---------------------------------------------------------------- outcomes and waiting


def _outcomes(rows: Iterable[UsageRecord], span: Span, now: float, submitted: int) -> Outcomes:
    rows = list(rows)
    ended = [row for row in rows if _ended_in(row, span)]
    counts = {state: sum(1 for row in ended if row.outcome is state) for state in JobState}
    return Outcomes(
        submitted=submitted,
        started=sum(1 for row in rows if _planned_in(row, span)),
        completed=counts[JobState.COMPLETED],
        failed=counts[JobState.FAILED],
        stopped=counts[JobState.STOPPED],
        interrupted=counts[JobState.QUEUED],
        reasons=_reasons(ended, span, now),
    )


def _reasons(ended: Iterable[UsageRecord], span: Span, now: float) -> tuple[Reason, ...]:
    attempts: defaultdict[tuple[str, bool], list[UsageRecord]] = defaultdict(list)
    for row in ended:
        if row.outcome in (JobState.FAILED, JobState.QUEUED):
            attempts[str(row.end_reason or "unknown"), row.outcome is JobState.QUEUED].append(row)
    found = [
        Reason(
            name=name,
            attempts=len(rows),
            gpu_hours=total_of(rows, span, now).gpu_hours,
            is_retried=is_retried,
        )
        for (name, is_retried), rows in attempts.items()
    ]
    return tuple(sorted(found, key=lambda reason: (reason.is_retried, -reason.attempts, reason.name)))


def _waiting_by_queue(rows: Iterable[UsageRecord], span: Span) -> tuple[Waiting, ...]:
    waits: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        if _planned_in(row, span):
            waits[row.queue].append(row.wait_seconds)
    found = (_waiting(queue, seconds) for queue, seconds in sorted(waits.items()))
    return tuple(waiting for waiting in found if waiting is not None)


def _waiting(queue: str, seconds: list[float]) -> Waiting | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    p50, p90, p99 = (_percentile(ordered, part) for part in (50, 90, 99))
    return Waiting(queue=queue, attempts=len(ordered), p50=p50, p90=p90, p99=p99, most=ordered[-1])


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed: always one that really occurred."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _wait_bins(rows: Iterable[UsageRecord], span: Span) -> tuple[Bin, ...]:
    waits = [row.wait_seconds for row in rows if _planned_in(row, span)]
    return _binned(waits, [*zip(WAIT_BORDERS, (*WAIT_BORDERS[1:], None), strict=True)])


def _utilization_bins(rows: Iterable[UsageRecord]) -> tuple[Bin, ...]:
    """Tenths; a GPU that is used all the time belongs to the last one."""
    known = [row.measured.utilization for row in rows]
    borders: list[tuple[float, float | None]] = [(tenth / 10, (tenth + 1) / 10) for tenth in range(10)]
    return _binned([min(value, 0.9999) for value in known if value is not None], borders)


def _binned(values: Sequence[float], borders: Sequence[tuple[float, float | None]]) -> tuple[Bin, ...]:
    return tuple(
        Bin(low=low, high=high, count=sum(1 for value in values if low <= value < (math.inf if high is None else high)))
        for low, high in borders
    )


# ---------------------------------------------------------------- health


def _health(material: Material, span: Span) -> Health:
    return Health(
        alerts=_alert_counts(material.alerts, span, material.now),
        gpus=_mishaps(material.events, span, "gpu."),
        nodes=_mishaps(material.events, span, "node."),
    )


def _alert_counts(alerts: Iterable[Alert], span: Span, now: float) -> tuple[AlertCount, ...]:
    found: defaultdict[tuple[str, Severity], list[Alert]] = defaultdict(list)
    for alert in alerts:
        if _fired_in(alert, span):
            found[alert.rule, alert.severity].append(alert)
    counts = [
        AlertCount(
            rule=rule,
            severity=severity,
            fired=len(fired),
            seconds=sum(_lasted(alert, min(span.until, now)) for alert in fired),
        )
        for (rule, severity), fired in found.items()
    ]
    return tuple(sorted(counts, key=lambda alert: (-alert.fired, alert.rule)))


def _lasted(alert: Alert, until: float) -> float:
    end = until if alert.resolved_at is None else min(alert.resolved_at, until)
    return max(0.0, end - (alert.fired_at or end))


def _mishaps(events: Iterable[EventRecord], span: Span, noun: str) -> tuple[Mishap, ...]:
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.action.startswith(noun) and event.action in MISHAPS and span.since <= event.at < span.until:
            times[event.subject, MISHAPS[event.action]].append(event.at)
    found = [
        Mishap(subject=subject, what=what, times=len(at), last_at=max(at)) for (subject, what), at in times.items()
    ]
    return tuple(sorted(found, key=lambda mishap: (-mishap.times, mishap.subject, mishap.what)))


# ---------------------------------------------------------------- what belongs to a span


def _touches(row: UsageRecord, span: Span) -> bool:
    """Whether the attempt held resources in the span, or began or ended in it."""
    ended = math.inf if row.ended_at is None else row.ended_at
    return row.planned_at < span.until and ended >= span.since


def _planned_in(row: UsageRecord, span: Span) -> bool:
    return span.since <= row.planned_at < span.until


def _ended_in(row: UsageRecord, span: Span) -> bool:
    return row.ended_at is not None and span.since <= row.ended_at < span.until


def _fired_in(alert: Alert, span: Span) -> bool:
    return alert.fired_at is not None and span.since <= alert.fired_at < span.until
