"""Series as people ask for them: steps that suit a chart, and jobs through the GPUs that they held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.monitoring.series import CHART_POINTS, STEPS, Span, chosen_step, job_series, series_of
from corral.control.ports import Metric
from corral.control.records import UsageRecord
from corral.core.model import JobKind
from tests.unit.control.histories import MemoryHistory

JOB = UsageRecord(
    attempt_id="j-1.1",
    job_id="j-1",
    job_name="train",
    user="ann",
    group=None,
    kind=JobKind.TRAINING,
    queue="default",
    pool="default",
    model="A10",
    nodes=1,
    gpu_milli=2000,
    gpu_ids=("n1/0", "n1/1"),
    queued_at=100.0,
    planned_at=100.0,
    ended_at=200.0,
)


@pytest.fixture
def history() -> MemoryHistory:
    """Two GPUs, one always half as busy as the other, read every 5 s for 10 minutes."""
    kept = MemoryHistory()
    for at in range(0, 600, 5):
        kept.append(
            float(at),
            {
                Metric.GPU_UTILIZATION: {"n1/0": 0.8, "n1/1": 0.4, "n2/0": 1.0},
                Metric.GPU_POWER: {"n1/0": 300.0, "n1/1": 100.0, "n2/0": 50.0},
            },
        )
    return kept


def test_a_job_is_shown_while_it_held_its_gpus(history: MemoryHistory) -> None:
    again = replace(JOB, attempt_id="j-1.2", gpu_ids=("n2/0",), planned_at=300.0, ended_at=None)
    span = Span(since=0.0, until=600.0, step_seconds=60.0)
    metrics = (Metric.GPU_UTILIZATION, Metric.GPU_POWER)
    use, power = job_series(history, "j-1", metrics, [JOB, again], span)
    assert [point.at for point in use.points] == [60, 120, 180, 300, 360, 420, 480, 540]
    assert [(point.mean, point.least, point.most) for point in use.points[:4]] == [
        *[(pytest.approx(0.6), 0.4, 0.8)] * 3,
        (1.0, 1.0, 1.0),
    ]
    assert [point.count for point in use.points[:4]] == [4 * 2, 12 * 2, 4 * 2, 12]
    assert [point.mean for point in power.points[:4]] == [400.0, 400.0, 400.0, 50.0]


def test_each_gpu_by_itself(history: MemoryHistory) -> None:
    span = Span(since=150.0, until=600.0, step_seconds=60.0)
    found = job_series(history, "j-1", [Metric.GPU_UTILIZATION], [JOB], span, per_gpu=True)
    assert [(one.subject, [point.at for point in one.points]) for one in found] == [
        ("n1/0", [120, 180]),
        ("n1/1", [120, 180]),
    ]


def test_two_attempts_in_one_step_are_not_counted_twice(history: MemoryHistory) -> None:
    again = replace(JOB, attempt_id="j-1.2", planned_at=220.0, ended_at=None)
    span = Span(since=0.0, until=300.0, step_seconds=300.0)
    (power,) = job_series(history, "j-1", [Metric.GPU_POWER], [JOB, again], span)
    assert [(point.at, point.mean, point.count) for point in power.points] == [(0.0, 400.0, 2 * (20 + 16))]
    each = job_series(history, "j-1", [Metric.GPU_POWER], [JOB, again], span, per_gpu=True)
    assert [(one.subject, [point.mean for point in one.points]) for one in each] == [
        ("n1/0", [300.0]),
        ("n1/1", [100.0]),
    ]


def test_unmeasured_metric_has_no_points(history: MemoryHistory) -> None:
    span = Span(since=0.0, until=60.0, step_seconds=5.0)
    (one,) = series_of(history, [Metric.GPU_TEMPERATURE], ["n1/0"], span)
    assert (one.subject, one.points) == ("n1/0", ())
    assert series_of(history, [Metric.QUEUE_LENGTH], None, span) == []
    (nothing,) = job_series(history, "j-9", [Metric.GPU_POWER], [], span)
    assert nothing.points == []


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(60, 5), (3600, 15), (86_400, 300), (7 * 86_400, 3600), (30 * 86_400, 10_800), (3650 * 86_400, 13 * 86_400)],
)
def test_steps_that_people_can_read(seconds: float, step: float) -> None:
    assert chosen_step(0.0, seconds, 5.0) == step


@given(span=st.floats(1, 1e9), least=st.floats(0.5, 3600))
def test_a_chart_is_never_too_fine(span: float, least: float) -> None:
    step: Any = chosen_step(0.0, span, least)
    assert step >= least
    assert span / step <= CHART_POINTS + 1e-6
    assert step in STEPS or step % 86_400 == 0
