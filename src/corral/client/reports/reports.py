"""The routes of reports and their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ReportView, ScheduleView

#: How often somebody who waits for a report asks again.
ASK_SECONDS = 0.3


class Reports:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None) -> Iterator[ReportView]:
        """The newest first."""
        return self._transport.pages("/reports", limit=limit)

    def get(self, report_id: str) -> ReportView:
        return cast("ReportView", self._transport.get(f"/reports/{segment(report_id)}"))

    def create(self, body: Mapping[str, Any]) -> ReportView:
        """It is being made when this returns; see `wait`."""
        return cast("ReportView", self._transport.post("/reports", dict(body)))

    def wait(self, report_id: str, *, asked: Callable[[ReportView], None] = lambda report: None) -> ReportView:
        """The report once it is ready or has failed; `asked` hears of every look."""
        while True:
            report = self.get(report_id)
            asked(report)
            if report["state"] != "working":
                return report
            self._transport.sleep(ASK_SECONDS)

    def file(self, report_id: str, form: str) -> bytes:
        """The report as html, pdf or csv."""
        return self._transport.get_bytes(f"/reports/{segment(report_id)}/file", {"format": form})

    def delete(self, report_id: str) -> None:
        self._transport.delete(f"/reports/{segment(report_id)}")

    def schedules(self) -> Iterator[ScheduleView]:
        return self._transport.pages("/report-schedules")

    def create_schedule(self, body: Mapping[str, Any]) -> ScheduleView:
        return cast("ScheduleView", self._transport.post("/report-schedules", dict(body)))

    def edit_schedule(self, name: str, changes: Mapping[str, Any]) -> ScheduleView:
        path = f"/report-schedules/{segment(name)}"
        return cast("ScheduleView", self._transport.patch(path, dict(changes)))

    def delete_schedule(self, name: str) -> None:
        self._transport.delete(f"/report-schedules/{segment(name)}")
