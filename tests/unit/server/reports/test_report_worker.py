"""The thread that makes reports: what was asked for, what is due, and what a server that died left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from corral.control.errors import Refusal
from corral.control.ports import Store
from corral.control.records import ChannelRecord, ReportPeriod, ReportRecord, ReportSchedule, ReportState
from corral.control.reports import reports
from corral.control.reports.report_data import DAY, HOUR, Span
from corral.reporting import pdf
from corral.server.reports.report_worker import ReportWorker
from corral.stores.reports.report_files import DirectoryReportFiles
from tests.unit.control.report_rows import MONDAY, row
from tests.unit.control.world import ROOT, Desk, StillClock, eventually
from tests.unit.telemetry.history_model import NoHistory

NOW = MONDAY + 8 * DAY
WEEK = Span(since=MONDAY, until=MONDAY + 7 * DAY)


class DeskController:
    """Runs use cases at once, in the thread that asks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turn = threading.Lock()

    def execute(self, use_case: Any, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._answer(lambda: self._desk.do(use_case, *args, **kwargs))

    def inspect(self, read: Any, *args: Any) -> Future[Any]:
        return self._answer(lambda: read(self._desk.state, *args))

    def _answer(self, run: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        with self._turn:
            try:
                answer.set_result(run())
            except Refusal as refusal:
                answer.set_exception(refusal)
        return answer


@pytest.fixture
def desk(store: Store) -> Desk:
    made = Desk(store)
    made.now = NOW
    with store.write() as tx:
        tx.usage.save([row(1, 0, 60, gpus=4), row(2, 100, 160, gpus=2, user="bob")])
        tx.channels.save(ChannelRecord(name="mail", url="sealed", shown="mailto://…"))
    return made


@pytest.fixture
def files(tmp_path: Path) -> DirectoryReportFiles:
    return DirectoryReportFiles(tmp_path / "reports")


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def reporting(desk: Desk, files: DirectoryReportFiles, clock: StillClock) -> Iterator[ReportWorker]:
    made = ReportWorker(
        controller=DeskController(desk),  # type: ignore[arg-type]
        store=desk.store,
        history=NoHistory(),
        files=files,
        clock=clock,
        cluster="c-1",
    )
    yield made
    made.stop()


def state_of(desk: Desk, report_id: str) -> ReportRecord:
    with desk.store.read() as tx:
        return reports.existing(tx, report_id)


def test_a_report_is_made_in_every_format(desk: Desk, reporting: ReportWorker, files: DirectoryReportFiles) -> None:
    reporting.start()
    report = desk.do(reports.request, ROOT, "r-1", WEEK)
    reporting.wake()
    eventually(lambda: state_of(desk, "r-1").state is ReportState.READY)
    paths = {form: files.path("r-1", reports.file_name(report, form)) for form in ("html", "pdf", "csv")}
    content = {form: path.read_bytes() for form, path in paths.items() if path is not None}
    assert content["html"].startswith(b"<!doctype html>")
    assert content["csv"].count(b"\r\n") == 3
    with pypdfium2.PdfDocument(content["pdf"]) as opened:
        text = opened[0].get_textpage().get_text_range()
    assert "6.00" in text, "six GPU-hours"
    assert "c-1" in text


def test_report_left_by_a_dead_server_is_made_at_the_start(
    desk: Desk, reporting: ReportWorker, files: DirectoryReportFiles
) -> None:
    desk.do(reports.request, ROOT, "r-1", WEEK)
    files.put("r-gone", {"x": b"of a report that was deleted"})
    reporting.start()
    eventually(lambda: state_of(desk, "r-1").state is ReportState.READY)
    assert files.ids() == {"r-1"}, "files without a report are gone"


def test_a_report_that_cannot_be_made_fails_and_the_next_is_made(
    desk: Desk, reporting: ReportWorker, files: DirectoryReportFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> bytes:
        raise RuntimeError("no paper left")

    with monkeypatch.context() as patched:
        patched.setattr(pdf, "render", broken)
        desk.do(reports.request, ROOT, "r-1", WEEK)
        reporting.look()
    failed = state_of(desk, "r-1")
    assert (failed.state, failed.error) == (ReportState.FAILED, "RuntimeError: no paper left")
    assert files.ids() == set(), "nothing half made is left"
    desk.do(reports.request, ROOT, "r-2", WEEK)
    reporting.look()
    assert state_of(desk, "r-2").state is ReportState.READY
    assert state_of(desk, "r-1").state is ReportState.FAILED, "a failed one is not tried for ever"


def test_schedules_run_each_minute_and_their_reports_are_sent(
    desk: Desk, reporting: ReportWorker, files: DirectoryReportFiles, clock: StillClock
) -> None:
    weekly = ReportSchedule(name="weekly", period=ReportPeriod.WEEKLY, channels=("mail",))
    desk.now = MONDAY + 6 * DAY
    desk.do(reports.create_schedule, ROOT, weekly)
    clock.time = desk.now = MONDAY + 7 * DAY + 5 * HOUR
    reporting.look()
    with desk.store.read() as tx:
        assert tx.reports.ids() == set()
    clock.time = desk.now = MONDAY + 7 * DAY + 6 * HOUR
    reporting.look()
    with desk.store.read() as tx:
        [report_id] = tx.reports.ids()
        [notice] = tx.channels.waiting()
    report = state_of(desk, report_id)
    assert (report.state, report.since, report.until) == (ReportState.READY, WEEK.since, WEEK.until)
    assert notice.title == "[corral] Weekly report, 7 – 13 September 2026"
    assert "GPU-hours held: 6.00" in notice.body
    [attached] = notice.attachments
    assert Path(attached).name == "corral-report-20260907-20260913.pdf"
    assert Path(attached).read_bytes().startswith(b"%PDF")
    clock.time = desk.now = clock.time + 61
    reporting.look()
    with desk.store.read() as tx:
        assert tx.reports.ids() == {report_id}


def test_report_deleted_in_progress_leaves_no_files(
    desk: Desk, reporting: ReportWorker, files: DirectoryReportFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = pdf.render

    def deleting(*args: Any, **kwargs: Any) -> bytes:
        desk.do(reports.delete, ROOT, "r-1")
        return rendered(*args, **kwargs)

    monkeypatch.setattr(pdf, "render", deleting)
    desk.do(reports.request, ROOT, "r-1", WEEK)
    reporting.look()
    assert files.ids() == set()
