"""Implements `corral.control.ports.ReportTable`."""

from __future__ import annotations

from sqlalchemy import Connection

from corral.control.records import *  # noqa: F403
from corral.core.alerts.model import *  # noqa: F403
from corral.core.health.model import *  # noqa: F403
from corral.stores.sight_tables import report_rows, report_schedule_rows  # noqa: F401


class SqlReportTable:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, report_id: str) -> ReportRecord | None:
        raise NotImplementedError

    def page(self, *, cursor: str | None, limit: int) -> Page[ReportRecord]:
        raise NotImplementedError

    def save(self, report: ReportRecord) -> None:
        raise NotImplementedError

    def delete(self, report_id: str) -> None:
        raise NotImplementedError

    def working(self) -> list[ReportRecord]:
        raise NotImplementedError

    def schedules(self) -> list[ReportSchedule]:
        raise NotImplementedError

    def save_schedule(self, schedule: ReportSchedule) -> None:
        raise NotImplementedError

    def delete_schedule(self, name: str) -> None:
        raise NotImplementedError
