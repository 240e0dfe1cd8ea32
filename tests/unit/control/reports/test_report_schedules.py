"""Scheduled reports: every span exactly once, and after a long night only the last one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.records import ReportPeriod, ReportSchedule
from corral.control.reports.report_data import DAY, HOUR, Span
from corral.control.reports.report_schedules import due, next_run


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def schedule(period: ReportPeriod, created: str = "2026-01-15 12:00", **values: object) -> ReportSchedule:
    made = ReportSchedule(name="s", period=period, created_at=at(created))
    return replace(made, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("period", "now", "span"),
    [
        (ReportPeriod.DAILY, "2026-01-16 05:59", None),
        (ReportPeriod.DAILY, "2026-01-16 06:00", ("2026-01-15", "2026-01-16")),
        (ReportPeriod.DAILY, "2026-01-17 05:00", ("2026-01-15", "2026-01-16")),
        # 15 January 2026 is a Thursday
        (ReportPeriod.WEEKLY, "2026-01-18 23:00", None),
        (ReportPeriod.WEEKLY, "2026-01-19 06:00", ("2026-01-12", "2026-01-19")),
        (ReportPeriod.MONTHLY, "2026-01-31 23:00", None),
        (ReportPeriod.MONTHLY, "2026-02-01 06:00", ("2026-01-01", "2026-02-01")),
        (ReportPeriod.MONTHLY, "2026-12-31 06:00", ("2026-11-01", "2026-12-01")),
        (ReportPeriod.MONTHLY, "2027-01-01 07:00", ("2026-12-01", "2027-01-01")),
        (ReportPeriod.MONTHLY, "2028-03-01 06:00", ("2028-02-01", "2028-03-01")),
    ],
)
def test_due_periods(period: ReportPeriod, now: str, span: tuple[str, str] | None) -> None:
    expected = None if span is None else Span(since=at(span[0]), until=at(span[1]))
    assert due(schedule(period), at(now)) == expected


def test_a_new_schedule_does_not_begin_with_the_past() -> None:
    late = schedule(ReportPeriod.DAILY, created="2026-01-15 06:01")
    assert due(late, at("2026-01-15 06:02")) is None
    assert next_run(late, at("2026-01-15 06:02")) == at("2026-01-16 06:00")


def test_after_a_downtime_only_the_last_one_is_made() -> None:
    known = schedule(ReportPeriod.DAILY, last_until=at("2026-01-16"))
    span = due(known, at("2026-01-25 12:00"))
    assert span == Span(since=at("2026-01-24"), until=at("2026-01-25"))
    assert due(replace(known, last_until=span.until), at("2026-01-25 12:01")) is None


def test_disabled_schedule_is_never_due() -> None:
    off = schedule(ReportPeriod.DAILY, enabled=False)
    assert due(off, at("2026-02-25 12:00")) is None
    assert next_run(off, at("2026-02-25 12:00")) is None


@given(
    period=st.sampled_from([ReportPeriod.DAILY, ReportPeriod.WEEKLY, ReportPeriod.MONTHLY]),
    hour=st.integers(0, 23),
    weekday=st.integers(0, 6),
    created=st.integers(1_700_000_000, 1_900_000_000),
    looks=st.lists(st.floats(60, DAY), min_size=5, max_size=120),
)
def test_every_span_exactly_once(
    period: ReportPeriod, hour: int, weekday: int, created: int, looks: list[float]
) -> None:
    """A server that looks at least once a day leaves no span out and reports none twice."""
    kept = ReportSchedule(name="s", period=period, hour=hour, weekday=weekday, created_at=float(created))
    now, spans = float(created), []
    for pause in looks:
        expected = next_run(kept, now)
        assert expected is not None
        assert expected > now
        now += pause
        span = due(kept, now)
        assert (span is not None) == (now >= expected), "it is due when it was said that it would be"
        if span is not None:
            assert span.until <= now
            assert span.until % DAY == 0
            spans.append(span)
            kept = replace(kept, last_until=span.until)
            assert due(kept, now) is None
    assert all(one.until == other.since for one, other in pairwise(spans))
    if period is ReportPeriod.DAILY and now - created > 2 * DAY:
        # the first may be the day of the creation, or the day before it
        assert len(spans) >= (now - created) // DAY - 1
    if period is ReportPeriod.WEEKLY:
        assert all(datetime.fromtimestamp(span.until, UTC).weekday() == weekday for span in spans)
    if period is ReportPeriod.MONTHLY:
        assert all(datetime.fromtimestamp(span.since, UTC).day == 1 for span in spans)
    assert all(span.until + hour * HOUR > created for span in spans)
