"""The routes of reports and their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ReportView, ScheduleView

#: The interval at which `wait` polls.
POLL_SECONDS = 0.3


class Reports:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None) -> Iterator[ReportView]:
        """Stored reports, the newest first."""
        return self._transport.pages("/reports", limit=limit)

    def get(self, report_id: str) -> ReportView:
        """One stored report: its period, its state and its numbers."""
        return cast("ReportView", self._transport.get(f"/reports/{segment(report_id)}"))

    def create(self, body: Mapping[str, Any]) -> ReportView:
        """Starts the work on a report and returns at once; see `wait`."""
        return cast("ReportView", self._transport.post("/reports", dict(body)))

    def wait(self, report_id: str, *, on_poll: Callable[[ReportView], None] = lambda report: None) -> ReportView:
        """Polls until the report is ready or has failed, and returns it. `on_poll` is called with every answer."""
        while True:
            report = self.get(report_id)
            on_poll(report)
            if report["state"] != "working":
                return report
            self._transport.sleep(POLL_SECONDS)

    def file(self, report_id: str, form: str) -> bytes:
        """The report as html, pdf or csv."""
        return self._transport.get_bytes(f"/reports/{segment(report_id)}/file", {"format": form})

    def delete(self, report_id: str) -> None:
        """Delete a stored report."""
        self._transport.delete(f"/reports/{segment(report_id)}")

    def schedules(self) -> Iterator[ScheduleView]:
        """The schedules of reports, with the time of the next one."""
        return self._transport.pages("/report-schedules")

    def create_schedule(self, body: Mapping[str, Any]) -> ScheduleView:
        """Create a schedule."""
        return cast("ScheduleView", self._transport.post("/report-schedules", dict(body)))

    def edit_schedule(self, name: str, changes: Mapping[str, Any]) -> ScheduleView:
        """Change the given fields of a schedule."""
        path = f"/report-schedules/{segment(name)}"
        return cast("ScheduleView", self._transport.patch(path, dict(changes)))

    def delete_schedule(self, name: str) -> None:
        """Delete a schedule."""
        self._transport.delete(f"/report-schedules/{segment(name)}")
