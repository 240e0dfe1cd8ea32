"""The numbers of a report, compared with a simple second computation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.records import EventRecord, UsageRecord
from corral.control.reports.report_data import ReportData, Span, Tone
from corral.control.reports.report_numbers import TOP, Material, build, parts_of, step_of
from corral.core.alerts.model import Alert, Severity
from corral.core.model import EndReason, JobState
from tests.unit.control.report_rows import DAY, HOUR, MINUTE, MONDAY, gpu_counts, row, rows

NOW = MONDAY + 8 * DAY
WEEK = Span(since=MONDAY, until=MONDAY + 7 * DAY)


def report(usage: list[UsageRecord], span: Span = WEEK, **values: object) -> ReportData:
    material = Material(cluster="c", title="t", span=span, now=NOW, usage=usage, gpus_now=8)
    return build(replace(material, **values))  # type: ignore[arg-type]


# ---------------------------------------------------------------- a week that was computed by hand

STORY = [
    # ann: 2 h of 4 GPUs, half used, and 10 h of one GPU that did nothing
    row(1, 0, 120, gpus=4, waited=30, use=0.5),
    row(2, 600, 1200, gpus=1, waited=7200, use=0.0, outcome=JobState.STOPPED, reason=EndReason.STOPPED_BY_USER),
    # bob: one hour that failed, after an interrupted one
    row(3, 60, 120, gpus=2, use=0.8, user="bob", group="speech", outcome=JobState.QUEUED, reason=EndReason.NODE_LOST),
    row(3, 200, 260, gpus=2, use=0.8, user="bob", group="speech", outcome=JobState.FAILED, attempt_id="j-3.2"),
    # cho: runs across the end of the week, 12 h of 24 h in it
    row(4, 7 * 1440 - 720, 7 * 1440 + 720, gpus=2, user="cho", group=None, queue="night", model="H200"),
    # ended before the week
    row(5, -600, -60, gpus=8),
]


def test_the_numbers_of_a_week() -> None:
    data = report(STORY, submitted=5)
    hours = data.totals.hours
    assert hours.gpu_hours == pytest.approx(8 + 10 + 2 + 2 + 24)
    assert hours.busy_gpu_hours == pytest.approx(0.9 * (8 * 0.5 + 4 * 0.8 + 24 * 0.5))
    assert hours.idle_gpu_hours == pytest.approx(0.9 * (0.1 * 8 + 10 + 0.1 * 4 + 0.1 * 24))
    assert hours.energy_kwh == pytest.approx(46 * 0.3)
    assert data.totals.users == 3
    outcomes = data.totals.outcomes
    assert (outcomes.submitted, outcomes.started) == (5, 5)
    assert (outcomes.completed, outcomes.failed, outcomes.stopped, outcomes.interrupted) == (1, 1, 1, 1)
    assert outcomes.failure_rate == 0.5
    assert [(reason.name, reason.is_retried, round(reason.gpu_hours, 6)) for reason in outcomes.reasons] == [
        ("exit_code", False, 2),
        ("node_lost", True, 2),
    ]
    assert [(share.name, share.hours.jobs, round(share.hours.gpu_hours, 6)) for share in data.top_users] == [
        ("cho", 1, 24),
        ("ann", 2, 18),
        ("bob", 1, 4),
    ]
    assert [(share.name, round(share.hours.gpu_hours, 6)) for share in data.groups] == [
        ("", 24),
        ("vision", 18),
        ("speech", 4),
    ]
    assert [(share.name, round(share.hours.gpu_hours, 6)) for share in data.models] == [("H200", 24), ("A100", 22)]
    default = data.queues[0]
    assert (default.queue, default.attempts, default.p50, default.p90, default.most) == ("default", 4, 0, 7200, 7200)
    assert [(one.low, one.count) for one in data.wait_bins if one.count] == [(0.0, 3), (10.0, 1), (3600.0, 1)]
    assert [one.count for one in data.utilization_bins] == [1, 0, 0, 0, 0, 2, 0, 0, 2, 0]


def test_the_steps_of_a_week_are_its_days() -> None:
    data = report(STORY)
    assert [step.span.since for step in data.steps] == [MONDAY + day * DAY for day in range(7)]
    assert [round(step.hours.gpu_hours, 6) for step in data.steps] == [22, 0, 0, 0, 0, 0, 24]
    assert [(step.completed, step.failed, step.stopped) for step in data.steps][:2] == [(1, 1, 1), (0, 0, 0)]
    assert all(step.available_gpu_hours == pytest.approx(8 * 24) for step in data.steps)
    assert data.steps[0].allocation == pytest.approx(22 / 192)
    assert data.totals.allocation == pytest.approx(46 / (7 * 192))


def test_available_gpus_are_those_of_their_time() -> None:
    counts = gpu_counts(4, MONDAY - 7 * DAY, MONDAY + DAY) + gpu_counts(8, MONDAY + 2 * DAY, MONDAY + 7 * DAY)
    data = report([], gpu_counts=counts)
    known = [step.available_gpu_hours for step in data.steps]
    # a day without readings is like the day before it
    assert known == [pytest.approx(96), pytest.approx(96), *[pytest.approx(192)] * 5]


def test_time_before_the_first_reading_does_not_count_as_free() -> None:
    data = report([row(1, 3 * 1440, 3 * 1440 + 60)])
    assert [step.available_gpu_hours for step in data.steps[:3]] == [None, None, None]
    assert data.totals.available_gpu_hours == pytest.approx(4 * 192)
    assert data.before is None


def test_the_period_before_is_compared_when_it_was_seen() -> None:
    before = [row(9, -7 * 1440, -7 * 1440 + 600, gpus=4)]
    data = report([*before, *STORY], gpu_counts=gpu_counts(8, MONDAY - 7 * DAY, MONDAY + 7 * DAY))
    assert data.before is not None
    assert data.before.hours.gpu_hours == pytest.approx(40 + 72)
    assert any("than in the period before" in finding.text for finding in data.findings)


def test_an_empty_period_says_that_nothing_ran() -> None:
    data = report([])
    assert data.totals.is_empty
    assert data.totals.available_gpu_hours is None
    assert [finding.text for finding in data.findings] == [
        "Nothing ran in this period: no job was submitted, started or ended."
    ]
    assert len(data.steps) == 7


def test_findings_name_what_stands_out() -> None:
    data = report(STORY, gpu_counts=gpu_counts(8, MONDAY, MONDAY + 7 * DAY))
    reported = {finding.text.split(",")[0].split("(")[0].strip(): finding.tone for finding in data.findings}
    assert 3 <= len(data.findings) <= 6
    assert any("without any use" in finding.text and "by ann" in finding.text for finding in data.findings)
    assert any(finding.tone is Tone.BAD and "failed" in finding.text for finding in data.findings)
    assert len(reported) == len(data.findings), "no two say the same"


def test_many_users_are_the_largest_and_the_rest() -> None:
    many = [row(number, number, number + 10 + number, user=f"u{number:02d}") for number in range(1, 31)]
    data = report(many)
    assert len(data.top_users) == TOP + 1
    rest = data.top_users[-1]
    assert (rest.name, rest.stands_for, rest.hours.jobs) == ("", 20, 20)
    total = sum(share.hours.gpu_hours for share in data.top_users)
    assert total == pytest.approx(data.totals.hours.gpu_hours)
    one_more = report(many[: TOP + 1]).top_users
    assert all(share.stands_for == 1 for share in one_more), "a rest of one is shown by its name"


def test_health_counts_what_happened_in_the_period() -> None:
    def alert(number: int, rule: str, fired: float | None, resolved: float | None = None) -> Alert:
        at = None if fired is None else MONDAY + fired * HOUR
        end = None if resolved is None else MONDAY + resolved * HOUR
        severity = Severity.WARNING
        return Alert(id=number, rule=rule, subject="g", scope="gpu", severity=severity, fired_at=at, resolved_at=end)

    def event(hour: float, action: str, subject: str) -> EventRecord:
        return EventRecord(at=MONDAY + hour * HOUR, actor="corral", action=action, subject=subject)

    alerts = [alert(1, "hot", 1, 3), alert(2, "hot", 2, 2.5), alert(3, "lost", 167), alert(4, "hot", None)]
    alerts.append(alert(5, "hot", -1, 1))
    events = [event(1, "gpu.failed", "g1"), event(2, "gpu.failed", "g1"), event(-1, "gpu.failed", "g2")]
    events += [event(5, "node.down", "n1"), event(6, "gpu.healthy", "g1"), event(7, "gpu.suspect", "g3")]
    health = report(STORY, alerts=alerts, events=events).health
    assert [(found.rule, found.fired, found.seconds) for found in health.alerts] == [
        ("hot", 2, 2.5 * HOUR),
        ("lost", 1, HOUR),
    ]
    assert [(mishap.subject, mishap.what, mishap.times) for mishap in health.gpus] == [
        ("g1", "failed", 2),
        ("g3", "suspected", 1),
    ]
    assert [(mishap.subject, mishap.what) for mishap in health.nodes] == [("n1", "down")]


# ---------------------------------------------------------------- for all weeks


def naive(usage: list[UsageRecord], span: Span) -> dict[str, float]:
    """Minute by minute: the job that holds a GPU in a minute has it for that minute, with an equal part of what was
    measured. No arithmetic of spans at all."""
    sums = {"gpu_hours": 0.0, "busy": 0.0, "idle": 0.0, "kwh": 0.0}
    for record in usage:
        end = NOW if record.ended_at is None else record.ended_at
        minutes = round((end - record.planned_at) / MINUTE)
        for number in range(minutes):
            at = record.planned_at + number * MINUTE
            if span.since <= at < span.until:
                sums["gpu_hours"] += record.gpu_milli / 1000 / 60
                sums["busy"] += record.measured.busy_gpu_seconds / 3600 / minutes
                sums["idle"] += record.measured.idle_gpu_seconds / 3600 / minutes
                sums["kwh"] += record.measured.energy_joules / 3_600_000 / minutes
    return sums


@settings(max_examples=60)
@given(usage=rows(), first=st.integers(0, 6 * 24), length=st.integers(1, 7 * 24))
def test_totals_are_those_of_a_walk_through_every_minute(usage: list[UsageRecord], first: int, length: int) -> None:
    span = Span(since=MONDAY + first * HOUR, until=MONDAY + min(first + length, 7 * 24) * HOUR)
    data = report(usage, span)
    expected, hours = naive(usage, span), data.totals.hours
    assert hours.gpu_hours == pytest.approx(expected["gpu_hours"], abs=1e-6)
    assert hours.busy_gpu_hours == pytest.approx(expected["busy"], abs=1e-6)
    assert hours.idle_gpu_hours == pytest.approx(expected["idle"], abs=1e-6)
    assert hours.energy_kwh == pytest.approx(expected["kwh"], abs=1e-6)


@settings(max_examples=100)
@given(usage=rows())
def test_parts_add_up_to_the_whole(usage: list[UsageRecord]) -> None:
    data = report(usage)
    total = data.totals.hours
    for parts in (
        [step.hours for step in data.steps],
        [share.hours for share in data.top_users],
        [share.hours for share in data.groups],
        [share.hours for share in data.models],
    ):
        for field in ("gpu_hours", "busy_gpu_hours", "idle_gpu_hours", "energy_kwh", "measured_gpu_hours"):
            assert math.fsum(getattr(part, field) for part in parts) == pytest.approx(getattr(total, field), abs=1e-6)
    outcomes = data.totals.outcomes
    assert sum(step.completed for step in data.steps) == outcomes.completed
    assert sum(step.failed for step in data.steps) == outcomes.failed
    assert sum(step.stopped for step in data.steps) == outcomes.stopped
    assert sum(one.count for one in data.wait_bins) == outcomes.started == sum(q.attempts for q in data.queues)
    assert sum(reason.attempts for reason in outcomes.reasons) == outcomes.failed + outcomes.interrupted


@settings(max_examples=60)
@given(usage=rows(), cut=st.integers(1, 7 * 24 - 1))
def test_two_spans_side_by_side_have_what_one_over_both_has(usage: list[UsageRecord], cut: int) -> None:
    middle = MONDAY + cut * HOUR
    whole = report(usage).totals
    left, right = (
        report(usage, Span(since=since, until=until)).totals
        for since, until in ((WEEK.since, middle), (middle, WEEK.until))
    )
    assert left.hours.gpu_hours + right.hours.gpu_hours == pytest.approx(whole.hours.gpu_hours, abs=1e-6)
    assert left.hours.energy_kwh + right.hours.energy_kwh == pytest.approx(whole.hours.energy_kwh, abs=1e-6)
    assert left.outcomes.ended + right.outcomes.ended == whole.outcomes.ended
    assert left.outcomes.started + right.outcomes.started == whole.outcomes.started


@given(since=st.floats(1e9, 2e9), seconds=st.floats(60, 366 * DAY))
def test_steps_cover_the_span_without_gap_or_overlap(since: float, seconds: float) -> None:
    span = Span(since=since, until=since + seconds)
    step = step_of(span)
    parts = parts_of(span, step)
    assert (parts[0].since, parts[-1].until) == (span.since, span.until)
    assert all(one.until == other.since for one, other in pairwise(parts))
    assert all(0 < part.seconds <= step + 1e-3 for part in parts)
    assert len(parts) <= 200
