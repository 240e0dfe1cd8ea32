"""The content of a report, in order: key figures, findings, charts and tables. HTML and PDF draw the same document.

All text is plain text: the HTML and PDF writers must escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corral.control.reports import report_texts as texts
from corral.control.reports.report_data import Bin, Finding, ReportData, Share, Step, Totals, Waiting
from corral.control.reports.report_findings import END_REASONS
from corral.reporting.charts import Bars, Chart, Histogram, Lines, Paint, Series, Trend


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """One key figure."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    cells: tuple[str, ...]
    #: relative to the largest row, for a small bar; None without one
    part: float | None = None
    is_total: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    #: the number of text columns from the left; the others are numbers
    text_columns: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    title: str
    chart: Chart


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    title: str
    text: str
    blocks: tuple[Figure | Table, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    title: str
    cluster: str
    span: str
    made: str
    tiles: tuple[Tile, ...]
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]


def document(data: ReportData) -> Document:
    sections = (
        [] if data.totals.is_empty else [_usage(data), _jobs(data), _waiting(data), _efficiency(data), _people(data)]
    )
    return Document(
        title=data.title,
        cluster=data.cluster,
        span=texts.span_text(data.span),
        made=texts.moment(data.made_at),
        tiles=_tiles(data.totals, data.before),
        findings=data.findings,
        sections=(*sections, _health(data), Section(title="How to read this report", text=ABOUT)),
    )


def summary(data: ReportData) -> str:
    """The report in a few lines, for a message."""
    shown = document(data)
    figures = [f"{tile.label}: {tile.value}" + (f" ({tile.note})" if tile.note else "") for tile in shown.tiles]
    found = [f"- {finding.text}" for finding in shown.findings]
    return "\n".join([f"{shown.cluster}, {shown.span}", "", *figures, "", "What stands out", *found])


# ---------------------------------------------------------------- key figures


def _tiles(now: Totals, before: Totals | None) -> tuple[Tile, ...]:
    outcomes, waiting = now.outcomes, now.waiting
    was = before or Totals()
    return (
        Tile(
            label="GPU-hours held",
            value=texts.hours(now.hours.gpu_hours),
            note=_change(now.hours.gpu_hours, was.hours.gpu_hours if before else None) or "by all jobs together",
        ),
        Tile(
            label="Allocation",
            value=texts.percent(now.allocation),
            note=_was(texts.percent(was.allocation)) or "of available GPU time",
        ),
        Tile(
            label="Use of held GPUs",
            value=texts.percent(now.hours.utilization),
            note=_was(texts.percent(was.hours.utilization)) or "mean utilisation",
        ),
        Tile(
            label="Energy",
            value=f"{texts.hours(now.hours.energy_kwh)} kWh",
            note=_change(now.hours.energy_kwh, was.hours.energy_kwh if before else None) or "of held GPUs",
        ),
        Tile(
            label="Jobs completed",
            value=texts.whole(outcomes.completed),
            note=f"{texts.whole(outcomes.failed)} failed, {texts.whole(outcomes.stopped)} stopped",
        ),
        Tile(
            label="Failure rate",
            value=texts.percent(outcomes.failure_rate),
            note=_was(texts.percent(was.outcomes.failure_rate)) or "of jobs that ran to their end",
        ),
        Tile(
            label="Median wait",
            value=texts.duration(waiting.p50) if waiting else texts.UNKNOWN,
            note=f"nine of ten within {texts.duration(waiting.p90)}" if waiting else "nothing started",
        ),
        Tile(
            label="Active users",
            value=texts.whole(now.users),
            note=_was(texts.whole(before.users) if before else texts.UNKNOWN) or "had jobs",
        ),
    )


def _was(text: str) -> str:
    return "" if text == texts.UNKNOWN else f"{text} in the period before"


def _change(now: float, before: float | None) -> str:
    if before is None:
        return ""
    if not before:
        return "none in the period before"
    change = now / before - 1
    if abs(change) < 0.005:
        return "as in the period before"
    return f"{abs(change) * 100:,.0f} % {'more' if change > 0 else 'less'} than before"


# ---------------------------------------------------------------- sections


def _borders(steps: Sequence[Step]) -> tuple[float, ...]:
    return (*(step.span.since for step in steps), steps[-1].span.until)


def _usage(data: ReportData) -> Section:
    steps, per = data.steps, texts.step_name(data.step_seconds)
    held, busy = data.totals.hours.gpu_hours, data.totals.hours.busy_gpu_hours
    available = data.totals.available_gpu_hours
    trend = Trend(
        summary=f"GPU-hours per {per}: available, held and busy",
        unit=f"GPU-hours per {per}",
        borders=_borders(steps),
        series=(
            Series(name="available", paint=Paint.AVAILABLE, values=tuple(step.available_gpu_hours for step in steps)),
            Series(name="held", paint=Paint.HELD, values=tuple(step.hours.gpu_hours for step in steps)),
            Series(name="busy", paint=Paint.BUSY, values=tuple(step.hours.busy_gpu_hours for step in steps)),
        ),
    )
    lines = Lines(
        summary=f"Allocation and utilisation per {per}, in percent",
        unit="percent",
        borders=_borders(steps),
        series=(
            Series(name="allocation", paint=Paint.HELD, values=tuple(step.allocation for step in steps)),
            Series(name="use of held GPUs", paint=Paint.BUSY, values=tuple(step.hours.utilization for step in steps)),
        ),
    )
    of = f" of the {texts.hours(available)} GPU-hours that there were" if available else " GPU-hours"
    text = f"Jobs held {texts.hours(held)}{of}, and kept GPUs busy for {texts.hours(busy, of=held)}."
    return Section(
        title="Usage",
        text=text,
        blocks=(
            Figure(title=f"GPU-hours per {per}", chart=trend),
            Figure(title="Allocation and utilisation", chart=lines),
        ),
    )


def _jobs(data: ReportData) -> Section:
    outcomes, steps, per = data.totals.outcomes, data.steps, texts.step_name(data.step_seconds)
    chart = Bars(
        summary=f"Jobs that ended per {per}, by outcome",
        unit=f"jobs per {per}",
        borders=_borders(steps),
        series=(
            Series(name="completed", paint=Paint.GOOD, values=tuple(step.completed for step in steps)),
            Series(name="stopped", paint=Paint.PLAIN, values=tuple(step.stopped for step in steps)),
            Series(name="failed", paint=Paint.BAD, values=tuple(step.failed for step in steps)),
        ),
    )
    text = (
        f"{texts.count(outcomes.submitted, 'job was', 'jobs were')} submitted. "
        f"{texts.count(outcomes.ended, 'job')} ended: {texts.whole(outcomes.completed)} completed, "
        f"{texts.whole(outcomes.failed)} failed, {texts.whole(outcomes.stopped)} stopped by a user. "
        f"{texts.count(outcomes.interrupted, 'attempt was', 'attempts were')} interrupted and tried again."
    )
    most = max((reason.gpu_hours for reason in outcomes.reasons), default=0.0)
    rows = tuple(
        Row(
            cells=(
                END_REASONS.get(reason.name, reason.name),
                "interrupted, tried again" if reason.is_retried else "failed",
                texts.whole(reason.attempts),
                texts.hours(reason.gpu_hours, of=most),
            )
        )
        for reason in outcomes.reasons
    )
    table = Table(
        title="Why jobs did not complete",
        columns=("Reason", "Outcome", "Attempts", "GPU-hours spent"),
        rows=rows,
        text_columns=2,
    )
    return Section(
        title="Jobs",
        text=text,
        blocks=(Figure(title="Jobs that ended", chart=chart), *((table,) if rows else ())),
    )


def _waiting(data: ReportData) -> Section:
    if data.totals.waiting is None:
        return Section(title="Waiting times", text="No job got its GPUs in this period.")
    total = data.totals.waiting
    chart = Histogram(
        summary="Attempts by how long they waited",
        unit="attempts",
        axis="waited for at least …",
        borders=tuple(texts.duration(bin.low) if bin.low else "0" for bin in data.wait_bins),
        counts=tuple(bin.count for bin in data.wait_bins),
    )
    rows = [_wait_row(queue.queue, queue) for queue in data.queues]
    if len(rows) > 1:
        rows.append(_wait_row("all queues", total, is_total=True))
    table = Table(
        title="Waiting times by queue",
        columns=("Queue", "Starts", "Median", "90 %", "99 %", "Longest"),
        rows=tuple(rows),
    )
    text = (
        f"From entering the queue to getting its GPUs, half of the {texts.count(total.attempts, 'start')} took at most "
        f"{texts.duration(total.p50)}, and the longest {texts.duration(total.most)}."
    )
    return Section(title="Waiting times", text=text, blocks=(Figure(title="How long jobs waited", chart=chart), table))


def _wait_row(name: str, waiting: Waiting, *, is_total: bool = False) -> Row:
    times = (waiting.p50, waiting.p90, waiting.p99, waiting.most)
    cells = (name, texts.whole(waiting.attempts), *(texts.duration(seconds) for seconds in times))
    return Row(cells=cells, is_total=is_total)


def _efficiency(data: ReportData) -> Section:
    hours = data.totals.hours
    if hours.utilization is None:
        text = "There are no measurements of the GPUs that jobs held in this period."
    else:
        text = (
            f"Held GPUs were used {texts.percent(hours.utilization)} on average and drew "
            f"{texts.hours(hours.energy_kwh)} kWh; "
            f"{texts.hours(hours.idle_gpu_hours)} GPU-hours passed without any use."
        )
    table = Table(
        title="By GPU model",
        columns=_share_columns("GPU model"),
        rows=_share_rows(data.models, data, total="all models"),
    )
    bins = data.utilization_bins
    chart = Histogram(
        summary="Attempts by the mean use of their GPUs",
        unit="attempts",
        axis="mean use of its GPUs",
        borders=(*(_percent_border(bin) for bin in bins), "100 %"),
        counts=tuple(bin.count for bin in bins),
    )
    figure = Figure(title="How well jobs used their GPUs", chart=chart)
    return Section(title="GPU efficiency", text=text, blocks=(table, figure))


def _percent_border(wait_bin: Bin) -> str:
    return f"{wait_bin.low * 100:.0f} %" if wait_bin.low else "0"


def _people(data: ReportData) -> Section:
    users = Table(
        title="Largest users",
        columns=_share_columns("User"),
        rows=_share_rows(data.top_users, data, total="all users"),
    )
    groups = Table(
        title="Groups",
        columns=_share_columns("Group"),
        rows=_share_rows(data.groups, data, total="all groups", unnamed="in no group"),
    )
    text = f"{texts.count(data.totals.users, 'user')} had jobs in this period."
    return Section(title="Users and groups", text=text, blocks=(users, groups))


def _share_columns(of: str) -> tuple[str, ...]:
    return (of, "GPU-hours", "Share", "Jobs", "Utilisation", "Idle GPU-hours", "kWh")


def _share_rows(shares: Sequence[Share], data: ReportData, *, total: str, unnamed: str = "") -> tuple[Row, ...]:
    whole = data.totals.hours
    largest = max((share.hours.gpu_hours for share in shares), default=0.0)
    rows = [
        Row(
            cells=(
                f"{share.stands_for} others" if share.stands_for > 1 else share.name or unnamed,
                texts.hours(share.hours.gpu_hours, of=whole.gpu_hours),
                texts.percent(share.hours.gpu_hours / whole.gpu_hours if whole.gpu_hours else None),
                texts.whole(share.hours.jobs),
                texts.percent(share.hours.utilization),
                texts.hours(share.hours.idle_gpu_hours, of=whole.idle_gpu_hours),
                texts.hours(share.hours.energy_kwh, of=whole.energy_kwh),
            ),
            part=share.hours.gpu_hours / largest if largest else 0.0,
        )
        for share in shares
    ]
    if len(rows) > 1:
        cells = (
            total,
            texts.hours(whole.gpu_hours),
            texts.percent(1.0 if whole.gpu_hours else None),
            "",
            texts.percent(whole.utilization),
            texts.hours(whole.idle_gpu_hours),
            texts.hours(whole.energy_kwh),
        )
        rows.append(Row(cells=cells, is_total=True))
    return tuple(rows)


def _health(data: ReportData) -> Section:
    health = data.health
    if not (health.alerts or health.gpus or health.nodes):
        return Section(title="Health", text="No alert fired, no GPU was suspected or failed, and no node was lost.")
    blocks = []
    if health.alerts:
        rows = (
            (alert.rule, alert.severity, texts.whole(alert.fired), texts.duration(alert.seconds))
            for alert in health.alerts
        )
        columns = ("Alert", "Severity", "Fired", "Lasted in all")
        blocks.append(
            Table(title="Alerts", columns=columns, rows=tuple(Row(cells=cells) for cells in rows), text_columns=2)
        )
    mishaps = [("GPU", mishap) for mishap in health.gpus] + [("Node", mishap) for mishap in health.nodes]
    if mishaps:
        lines = (
            (mishap.subject, kind, mishap.what, texts.whole(mishap.times), texts.moment(mishap.last_at))
            for kind, mishap in mishaps
        )
        blocks.append(
            Table(
                title="GPUs and nodes in trouble",
                columns=("Which", "Kind", "What", "Times", "Last"),
                rows=tuple(Row(cells=cells) for cells in lines),
                text_columns=3,
            )
        )
    text = f"{texts.count(health.alerts_fired, 'alert')} fired in this period."
    return Section(title="Health", text=text, blocks=tuple(blocks))


ABOUT = (
    "A job holds a GPU from the moment it is given to it until the attempt has ended; held time is cut at the borders "
    "of the period. Busy GPU-hours are held time multiplied by the GPU's utilisation; idle time is that in which a "
    "held GPU did nothing. Energy is that of held GPUs. What was measured of an attempt that crosses a border of the "
    "period counts in proportion to the time on this side. All times are UTC. The CSV of this report has one line per "
    "attempt, from which these numbers can be computed again."
)
