"""Reports, their schedules, and counting events, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import Store
from corral.control.records import (
    EventFilter,
    EventRecord,
    ReportPeriod,
    ReportRecord,
    ReportSchedule,
    ReportState,
)

pytest_plugins = ("tests.servers.fixtures",)

REPORT = ReportRecord(
    id="r-1",
    title="Weekly report, 1 – 7 三月 \0",
    period=ReportPeriod.WEEKLY,
    since=1000.25,
    until=2000.5,
    created_at=3000.0,
    created_by="ann",
    schedule="weekly",
    state=ReportState.FAILED,
    error='it "broke" \ud800',
)


def test_a_report_comes_back_as_it_was_and_is_replaced_by_id(store: Store) -> None:
    with store.write() as tx:
        tx.reports.save(replace(REPORT, state=ReportState.WORKING))
        assert tx.reports.get("r-1") == replace(REPORT, state=ReportState.WORKING)
        tx.reports.save(REPORT)
    with store.read() as tx:
        assert tx.reports.get("r-1") == REPORT
        assert tx.reports.get("r-2") is None
        assert tx.reports.ids() == {"r-1"}
    with store.write() as tx:
        tx.reports.delete("r-1")
        tx.reports.delete("unknown")
        assert tx.reports.get("r-1") is None


def test_reports_are_listed_newest_first_page_by_page(store: Store) -> None:
    # several of one moment: their order is by id, and no page may skip or repeat one
    made = [replace(REPORT, id=f"r-{number:02d}", created_at=float(number // 3)) for number in range(10)]
    with store.write() as tx:
        for report in made:
            tx.reports.save(report)
    seen: list[ReportRecord] = []
    cursor = None
    with store.read() as tx:
        while True:
            page = tx.reports.page(cursor=cursor, limit=3)
            seen += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == made[::-1]
        for bad in ("!", "bm90LWEtY3Vyc29y", "x" * 3000):
            with pytest.raises(ValueError, match="cursor"):
                tx.reports.page(cursor=bad, limit=3)


def test_reports_in_progress_are_found_oldest_first(store: Store) -> None:
    states = (ReportState.WORKING, ReportState.READY, ReportState.WORKING, ReportState.FAILED)
    with store.write() as tx:
        for number, state in enumerate(states):
            tx.reports.save(replace(REPORT, id=f"r-{number}", state=state, created_at=100.0 - number))
        assert [report.id for report in tx.reports.working()] == ["r-2", "r-0"]


def test_the_reports_of_one_schedule(store: Store) -> None:
    with store.write() as tx:
        for number in range(4):
            tx.reports.save(
                replace(REPORT, id=f"r-{number}", created_at=float(number), schedule="weekly" if number % 2 else "")
            )
        assert [report.id for report in tx.reports.of_schedule("weekly")] == ["r-3", "r-1"]
        assert tx.reports.of_schedule("daily") == []


def test_schedules_are_replaced_by_name_and_sorted(store: Store) -> None:
    weekly = ReportSchedule(
        name="weekly",
        period=ReportPeriod.WEEKLY,
        hour=23,
        weekday=6,
        channels=("mail", "团队"),
        enabled=False,
        created_at=5.5,
        last_until=86400.0,
    )
    daily = ReportSchedule(name="daily", period=ReportPeriod.DAILY)
    with store.write() as tx:
        tx.reports.save_schedule(replace(weekly, hour=1))
        tx.reports.save_schedule(daily)
        tx.reports.save_schedule(weekly)
    with store.read() as tx:
        assert tx.reports.schedules() == [daily, weekly]
    with store.write() as tx:
        tx.reports.delete_schedule("daily")
        tx.reports.delete_schedule("unknown")
        assert tx.reports.schedules() == [weekly]


def test_events_are_counted_as_they_are_listed(store: Store) -> None:
    with store.write() as tx:
        tx.events.append(
            [
                EventRecord(at=float(at), actor="ann", action="job.submitted" if at % 2 else "job.stopped", subject="j")
                for at in range(10)
            ]
        )
    with store.read() as tx:
        for where in (
            EventFilter(action="job.submitted"),
            EventFilter(action="job.submitted", since=3.0, until=7.0),
            EventFilter(actor="bob"),
        ):
            assert tx.events.count(where) == len(tx.events.page(where, cursor=None, limit=100).items)
        assert tx.events.count(EventFilter(action="job.submitted", since=3.0, until=7.0)) == 2
