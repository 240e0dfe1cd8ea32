"""Creates reports: one worker makes requested reports one by one, and checks every minute which schedules are due.

Reading, drawing and writing happen outside of every transaction; only the result is sent to the controller.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.live.worker import Worker
from corral.control.ports import Clock, History, ReportFiles, Store, StoreUnavailable
from corral.control.records import ReportRecord
from corral.control.reports import reports
from corral.control.reports.report_data import ReportData, Span
from corral.control.reports.report_numbers import Material, build
from corral.control.reports.report_sources import gpu_counts, read_stored
from corral.reporting import csv, html, pdf
from corral.reporting.document import document, summary

log = logging.getLogger("corral.server.reports.report_worker")

FORMATS = ("html", "pdf", "csv")
TICK_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


def new_report_id() -> str:
    return f"r-{secrets.token_hex(5)}"


class ReportWorker:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        history: History,
        files: ReportFiles,
        clock: Clock,
        cluster: str,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        """`cluster` is the name that is printed on every report."""
        self.files = files
        self._controller = controller
        self._store = store
        self._history = history
        self._clock = clock
        self._cluster = cluster
        self._tick_seconds = tick_seconds
        self._ticked_at = float("-inf")
        self._is_swept = False
        self._worker = Worker("reporting", self._round, every_seconds=tick_seconds)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """The present report is finished, or made again at the next start."""
        self._worker.stop()

    def wake(self) -> None:
        """A report was requested."""
        self._worker.wake()

    # ---------------------------------------------------------------- the thread

    def _round(self) -> None:
        if not self._is_swept:
            self._sweep()
            self._is_swept = True
        self.look()

    def look(self) -> None:
        """Request reports of due schedules, then make requested reports."""
        if self._clock.monotonic() >= self._ticked_at + self._tick_seconds:
            self._ticked_at = self._clock.monotonic()
            self._tick()
        with self._store.read() as tx:
            working = tx.reports.working()
        for report in working:
            if not self._worker.is_stopping:
                self._make(report)

    def _tick(self) -> None:
        with self._store.read() as tx:
            schedules = tx.reports.schedules()
        if schedules:
            # One id more than there are schedules: another one may be added at this moment.
            fresh = [new_report_id() for _ in range(len(schedules) + 1)]
            self._controller.execute(reports.run_schedules, fresh).result(_ANSWER_SECONDS)
            self.files.remove(self._controller.execute(reports.drop_old).result(_ANSWER_SECONDS))

    def _sweep(self) -> None:
        """Remove files without a report: the server died between writing and committing."""
        with self._store.read() as tx:
            known = tx.reports.ids()
        self.files.remove(self.files.ids() - known)

    def _make(self, report: ReportRecord) -> None:
        try:
            data, files = self._rendered(report)
            self.files.put(report.id, files)
        except (ControllerStopped, StoreUnavailable):
            raise
        except Exception as error:
            log.exception("report %s failed", report.id)
            reason = f"{type(error).__name__}: {error}"
            self._controller.execute(reports.fail, report.id, reason).result(_ANSWER_SECONDS)
            return
        attached = self.files.path(report.id, reports.file_name(report, "pdf"))
        made = self._controller.execute(
            reports.finish, report.id, summary=summary(data), attachments=[str(attached)] if attached else []
        ).result(_ANSWER_SECONDS)
        if made is None:
            self.files.remove([report.id])

    def _rendered(self, report: ReportRecord) -> tuple[ReportData, Mapping[str, bytes]]:
        span = Span(since=report.since, until=report.until)
        now = self._clock.now()
        with self._store.read() as tx:
            stored = read_stored(tx, span)
        material = Material(
            cluster=self._cluster,
            title=reports.TITLES[report.period],
            span=span,
            now=now,
            usage=stored.usage,
            submitted=stored.submitted,
            submitted_before=stored.submitted_before,
            gpu_counts=gpu_counts(self._history, span),
            gpus_now=self._controller.inspect(_count_gpus).result(_ANSWER_SECONDS),
            alerts=stored.alerts,
            events=stored.events,
        )
        data = build(material)
        shown = document(data)
        files = {
            reports.file_name(report, "html"): html.render(shown),
            reports.file_name(report, "csv"): csv.render(material.usage, span, now),
        }
        if pdf.is_installed():
            files[reports.file_name(report, "pdf")] = pdf.render(shown, made_at=now)
        return data, files


def _count_gpus(state: State) -> int:
    return sum(len(node.gpus) for node in state.snapshot.nodes.values())
