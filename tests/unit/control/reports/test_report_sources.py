"""The capacity of a report begins with the first reading, whatever the length of its steps."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from corral.control.ports import CLUSTER, Metric
from corral.control.reports.report_data import DAY, Span
from corral.control.reports.report_numbers import Material, build
from corral.control.reports.report_sources import gpu_counts
from tests.unit.control.report_rows import MONDAY
from tests.unit.telemetry.history_model import SetClock, open_history

#: 48 minutes after a whole hour
FIRST = MONDAY + 6 * DAY + 48 * 60


@pytest.mark.parametrize("days", [1, 7, 31])
def test_capacity_begins_with_the_first_reading(tmp_path: Path, days: int) -> None:
    now = FIRST + 12 * 60
    with closing(open_history(tmp_path / "history.db", SetClock(now))) as history:
        for second in range(0, 12 * 60, 5):
            history.append(FIRST + second, {Metric.CLUSTER_GPUS: {CLUSTER: 8.0}})
        span = Span(since=now - days * DAY, until=now)
        material = Material(cluster="c", title="t", span=span, now=now, gpu_counts=gpu_counts(history, span))
        assert build(material).totals.available_gpu_hours == pytest.approx(8 * 12 / 60, rel=0.02)
