"""GPU-hours and energy of a span, against numbers worked out by hand and against a recount second by second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.monitoring.usage_summary import Dimension, GpuHours, gpu_hours_by, summarize_usage
from corral.control.records import UsageRecord
from corral.core.model import JobKind
from corral.core.monitoring.attempt_usage import Measured

HOUR = 3600.0


def held(attempt: str, begin: float, end: float | None, gpus: float = 1.0, **changes: Any) -> UsageRecord:
    """An attempt from hour to hour, its energy one kWh for each GPU-hour, half of them busy."""
    fields: dict[str, Any] = {"user": "ann", "group": "vision", "queue": "default", "model": "A10", **changes}
    return UsageRecord(
        attempt_id=attempt,
        job_id=attempt.partition(".")[0],
        job_name="train",
        kind=JobKind.TRAINING,
        pool="default",
        nodes=1,
        gpu_milli=round(gpus * 1000),
        queued_at=begin * HOUR,
        planned_at=begin * HOUR,
        started_at=begin * HOUR,
        ended_at=None if end is None else end * HOUR,
        **fields,
    )


def measured(record: UsageRecord, gpu_hours: float) -> UsageRecord:
    seconds = gpu_hours * HOUR
    what = Measured(
        gpu_seconds=seconds,
        busy_gpu_seconds=seconds / 2,
        idle_gpu_seconds=seconds / 4,
        energy_joules=gpu_hours * 3_600_000,
    )
    return replace(record, measured=what)


STORY = [
    measured(held("j-1.1", 0, 4, gpus=2), 8),
    measured(held("j-1.2", 5, 6, gpus=2), 2),
    measured(held("j-2.1", 8, None, user="bob", group=None, queue="night"), 2),
    held("j-3.1", 1, 1, user="bob", group=None, queue="night"),  # failed at once
    held("j-4.1", 2, 3, gpus=0, user="cid", model=""),
]


def test_attempt_that_ended_before_it_began_has_used_no_gpus() -> None:
    never = replace(held("j-1.1", 0, 4, gpus=2), started_at=None)
    assert summarize_usage([never], 0.0, 10 * HOUR, now=10 * HOUR).total.gpu_hours == 0.0
    waits = replace(never, ended_at=None)
    assert summarize_usage([waits], 0.0, 10 * HOUR, now=10 * HOUR).total.gpu_hours == 20.0, "it still holds them"


def test_a_whole_span() -> None:
    summary = summarize_usage(STORY, 0.0, 10 * HOUR, now=10 * HOUR)
    assert summary.total == GpuHours(
        key="",
        gpu_hours=12,
        measured_gpu_hours=12,
        busy_gpu_hours=6,
        idle_gpu_hours=3,
        energy_kwh=12,
        jobs=4,
    )
    assert [(row.key, row.gpu_hours, row.jobs) for row in summary.by_user] == [
        ("ann", 10, 1),
        ("bob", 2, 2),
        ("cid", 0, 1),
    ]
    assert [(row.key, row.energy_kwh) for row in summary.by_group] == [("vision", 10), ("", 2)]
    assert [(row.key, row.gpu_hours) for row in summary.by_queue] == [("default", 10), ("night", 2)]
    assert [(row.key, row.utilization) for row in summary.by_model] == [("A10", 0.5)]


def test_attempts_across_the_ends_of_the_span_count_in_part() -> None:
    summary = summarize_usage(STORY, 3 * HOUR, 9 * HOUR, now=10 * HOUR)
    ann, bob = summary.by_user
    assert (ann.key, ann.gpu_hours, ann.energy_kwh) == ("ann", 4, 4)
    # Of the two hours that bob's job has had so far, one is in the span.
    assert (bob.key, bob.gpu_hours, bob.energy_kwh, bob.jobs) == ("bob", 1, 1, 1)


def test_nothing_happened() -> None:
    summary = summarize_usage([], 0.0, HOUR, now=HOUR)
    assert (summary.total, summary.by_user) == (GpuHours(key=""), ())
    assert summary.total.utilization is None


spans = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)


@given(
    attempts=st.lists(st.tuples(spans, st.integers(0, 4), st.sampled_from(["ann", "bob"]), st.booleans())),
    span=spans,
)
def test_usage_summary_equals_a_recount_by_hours(attempts: list[Any], span: list[int]) -> None:
    now = 30
    records = [
        held(f"j-{place}.1", begin, None if lasts else end, gpus, user=user)
        for place, ((begin, end), gpus, user, lasts) in enumerate(attempts, start=1)
    ]
    since, until = (hour * HOUR for hour in span)
    rows = gpu_hours_by(Dimension.USER, records, since, until, now * HOUR)
    found = {row.key: row.gpu_hours for row in rows}
    for user in ("ann", "bob"):
        counted = sum(
            gpus
            for (begin, end), gpus, owner, lasts in attempts
            for hour in range(begin, now if lasts else end)
            if owner == user and span[0] <= hour < span[1]
        )
        assert found.get(user, 0.0) == pytest.approx(counted)
