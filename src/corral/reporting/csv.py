"""The data of a report: one line per attempt (RFC 4180), enough to compute every number about usage again.

A cell that a spreadsheet would take for a formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime

from corral.control.monitoring.usage_summary import gpu_hours_of
from corral.control.records import UsageRecord
from corral.control.reports.report_data import Span
from corral.core.model import WHOLE

COLUMNS = (
    "attempt",
    "job",
    "job_name",
    "user",
    "group",
    "kind",
    "queue",
    "pool",
    "gpu_model",
    "nodes",
    "gpus",
    "gpu_ids",
    "queued_at",
    "planned_at",
    "started_at",
    "ended_at",
    "end_reason",
    "outcome",
    "wait_seconds",
    # within the period of the report
    "gpu_hours",
    "measured_gpu_hours",
    "busy_gpu_hours",
    "idle_gpu_hours",
    "energy_kwh",
    # of the attempt as a whole
    "total_measured_gpu_seconds",
    "total_busy_gpu_seconds",
    "total_idle_gpu_seconds",
    "total_energy_joules",
    "memory_peak_bytes",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def render(rows: Iterable[UsageRecord], span: Span, now: float) -> bytes:
    """The rows that held GPUs in the span, or began or ended in it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        if row.planned_at < span.until and (row.ended_at is None or row.ended_at >= span.since):
            writer.writerow(_cells(row, span, now))
    return text.getvalue().encode("utf-8", "replace")


def _cells(row: UsageRecord, span: Span, now: float) -> list[str]:
    within, measured = gpu_hours_of(row, span.since, span.until, now), row.measured
    texts = (
        row.attempt_id,
        row.job_id,
        row.job_name,
        row.user,
        row.group or "",
        row.kind,
        row.queue,
        row.pool,
        row.model,
    )
    return [
        *(harmless(text) for text in texts),
        str(row.nodes),
        f"{row.gpu_milli / WHOLE:g}",
        harmless(" ".join(row.gpu_ids)),
        *(_moment(at) for at in (row.queued_at, row.planned_at, row.started_at, row.ended_at)),
        row.end_reason or "",
        row.outcome or "",
        repr(row.wait_seconds),
        *(
            repr(value)
            for value in (
                within.gpu_hours,
                within.measured_gpu_hours,
                within.busy_gpu_hours,
                within.idle_gpu_hours,
                within.energy_kwh,
                measured.gpu_seconds,
                measured.busy_gpu_seconds,
                measured.idle_gpu_seconds,
                measured.energy_joules,
            )
        ),
        str(measured.memory_peak_bytes),
    ]


def harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _moment(at: float | None) -> str:
    """RFC 3339 to the microsecond, in UTC."""
    if at is None:
        return ""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
