"""Asking for reports, scheduling them, and what is written down when they are made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import Forbidden, Invalid, NotFound, OverLimit, Refusal, Taken
from corral.control.records import ChannelRecord, DeliveryRecord, ReportPeriod, ReportSchedule, ReportState
from corral.control.reports import reports
from corral.control.reports.report_data import DAY, HOUR, Span
from tests.unit.control.world import ANN, ROOT, Desk

NOW = 1_790_812_800.0
WEEK = Span(since=NOW - 7 * DAY, until=NOW)
DAILY = ReportSchedule(name="daily", period=ReportPeriod.DAILY, channels=("mail",))


@pytest.fixture(autouse=True)
def at_a_known_time(desk: Desk) -> None:
    desk.now = NOW
    with desk.store.write() as tx:
        tx.channels.save(ChannelRecord(name="mail", url="sealed", shown="mailto://…"))


def deliveries(desk: Desk) -> list[DeliveryRecord]:
    with desk.store.read() as tx:
        return tx.channels.waiting()


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ({"period_seconds": 7 * DAY}, WEEK),
        ({"since": NOW - DAY}, Span(since=NOW - DAY, until=NOW)),
        ({"since": 0.0, "until": 60.0}, Span(since=0.0, until=60.0)),
    ],
)
def test_request_selects_a_span(asked: dict[str, float], span: Span) -> None:
    nothing = {"period_seconds": None, "since": None, "until": None}
    assert reports.span_asked(NOW, **{**nothing, **asked}) == span


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "period"),
        ({"period_seconds": DAY, "since": 5.0}, "period"),
        ({"period_seconds": DAY, "until": 5.0}, "until"),
        ({"period_seconds": 59.0}, "period"),
        ({"period_seconds": 367 * DAY}, "period"),
        ({"since": NOW}, "since"),
        ({"since": NOW - DAY, "until": NOW + 1}, "until"),
        ({"since": NOW - 400 * DAY}, "since"),
        ({"since": -DAY, "until": 0.0}, "since"),
    ],
)
def test_spans_that_make_no_report(asked: dict[str, float], field: str) -> None:
    nothing = {"period_seconds": None, "since": None, "until": None}
    with pytest.raises(Invalid) as refused:
        reports.span_asked(NOW, **{**nothing, **asked})
    assert refused.value.field == field


def test_a_report_is_working_then_ready(desk: Desk) -> None:
    report = desk.do(reports.request, ROOT, "r-1", WEEK)
    assert (report.state, report.title) == (ReportState.WORKING, "Usage report, 24 – 30 September 2026")
    assert reports.file_name(report, "pdf") == "corral-report-20260924-20260930.pdf"
    made = desk.do(reports.finish, "r-1", summary="s", attachments=["x.pdf"])
    assert made is not None
    assert made.state is ReportState.READY
    assert desk.actions("r-1") == ["report.requested", "report.ready"]
    assert deliveries(desk) == [], "a report on request sends no notice"


def test_a_report_that_fails_says_why(desk: Desk) -> None:
    desk.do(reports.request, ROOT, "r-1", WEEK)
    desk.do(reports.fail, "r-1", "x" * 1000)
    with desk.store.read() as tx:
        report = reports.existing(tx, "r-1")
    assert (report.state, report.error) == (ReportState.FAILED, "x" * reports.MAX_ERROR)


def test_report_deleted_in_progress_stays_deleted(desk: Desk) -> None:
    desk.do(reports.request, ROOT, "r-1", WEEK)
    desk.do(reports.delete, ROOT, "r-1")
    assert desk.do(reports.finish, "r-1", summary="s", attachments=[]) is None
    desk.do(reports.fail, "r-1", "too late")
    with desk.store.read() as tx, pytest.raises(NotFound):
        reports.existing(tx, "r-1")


def test_more_reports_at_once_than_the_limit_are_refused(desk: Desk) -> None:
    for number in range(reports.MAX_WORKING):
        desk.do(reports.request, ROOT, f"r-{number}", WEEK)
    with pytest.raises(OverLimit):
        desk.do(reports.request, ROOT, "r-x", WEEK)


def test_a_scheduled_report_is_asked_for_once_and_sent_to_its_channels(desk: Desk) -> None:
    desk.do(reports.create_schedule, ROOT, DAILY)
    desk.now = NOW + 5 * HOUR
    assert desk.do(reports.run_schedules, ["r-1"]) == []
    desk.now = NOW + 6 * HOUR + 5
    [asked] = desk.do(reports.run_schedules, ["r-1"])
    assert (asked.id, asked.schedule, asked.since, asked.until) == ("r-1", "daily", NOW - DAY, NOW)
    assert desk.do(reports.run_schedules, ["r-2"]) == []
    desk.do(reports.finish, "r-1", summary="all was well", attachments=["/r/x.pdf"])
    [notice] = deliveries(desk)
    assert (notice.channel, notice.kind, notice.body) == ("mail", "report", "all was well")
    assert notice.title == "[corral] Daily report, 30 September 2026"
    assert notice.attachments == ("/r/x.pdf",)
    desk.do(reports.finish, "r-1", summary="again", attachments=[])
    assert len(deliveries(desk)) == 1, "a report that was ready already is not sent again"


def test_newest_reports_of_each_schedule_are_kept(desk: Desk) -> None:
    desk.do(reports.create_schedule, ROOT, DAILY)
    desk.do(reports.request, ROOT, "by-hand", WEEK)
    for day in range(reports.KEPT_PER_SCHEDULE + 3):
        desk.now = NOW + day * DAY + 6 * HOUR
        assert len(desk.do(reports.run_schedules, [f"r-{day}"])) == 1
    assert sorted(desk.do(reports.drop_old)) == ["r-0", "r-1", "r-2"]
    with desk.store.read() as tx:
        assert len(tx.reports.ids()) == reports.KEPT_PER_SCHEDULE + 1
    assert desk.do(reports.drop_old) == []


def test_a_schedule_is_changed_and_deleted(desk: Desk) -> None:
    made = desk.do(reports.create_schedule, ROOT, replace(DAILY, last_until=5.0))
    assert (made.created_at, made.last_until) == (NOW, None)
    changed = desk.do(reports.edit_schedule, ROOT, "daily", {"hour": 9, "enabled": False})
    assert changed == replace(made, hour=9, enabled=False)
    desk.do(reports.edit_schedule, ROOT, "daily", {"hour": 9})
    desk.do(reports.delete_schedule, ROOT, "daily")
    assert desk.actions("daily") == [
        "report-schedule.created",
        "report-schedule.edited",
        "report-schedule.deleted",
    ]


@pytest.mark.parametrize(
    ("changes", "refusal", "field"),
    [
        ({"name": "Has Space"}, Invalid, "name"),
        ({"name": ""}, Invalid, "name"),
        ({"period": ReportPeriod.CUSTOM}, Invalid, "period"),
        ({"hour": 24}, Invalid, "hour"),
        ({"weekday": 7}, Invalid, "weekday"),
        ({"channels": ("mail", "nowhere")}, Invalid, "channels"),
        ({"name": "taken"}, Taken, "name"),
    ],
)
def test_schedules_that_are_refused(desk: Desk, changes: dict[str, object], refusal: type[Refusal], field: str) -> None:
    desk.do(reports.create_schedule, ROOT, replace(DAILY, name="taken"))
    with pytest.raises(refusal) as refused:
        desk.do(reports.create_schedule, ROOT, replace(DAILY, **changes))  # type: ignore[arg-type]
    assert refused.value.field == field


def test_only_operators_have_to_do_with_reports(desk: Desk) -> None:
    for use_case, args in (
        (reports.request, ("r-1", WEEK)),
        (reports.delete, ("r-1",)),
        (reports.create_schedule, (DAILY,)),
        (reports.delete_schedule, ("daily",)),
    ):
        with pytest.raises(Forbidden):
            desk.do(use_case, ANN, *args)
    desk.do(reports.create_schedule, ROOT, DAILY)
    with pytest.raises(Forbidden):
        desk.do(reports.edit_schedule, ANN, "daily", {"hour": 1})
