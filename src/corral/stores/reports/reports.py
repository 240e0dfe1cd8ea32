"""Reports and their schedules. The files of reports are stored outside of the database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, delete, or_, select

from corral.control.records import Page, ReportPeriod, ReportRecord, ReportSchedule, ReportState
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.statements import replace_rows
from corral.stores.schema.monitoring_tables import report_rows, report_schedule_rows

_NEWEST_FIRST = Sort(field="report", descending=True, type=float, id_type=str)


class SqlReportTable:
    """Implements `corral.control.ports.ReportTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, report_id: str) -> ReportRecord | None:
        row = self._connection.execute(select(report_rows).where(report_rows.c.id == report_id)).one_or_none()
        return None if row is None else _report_of(row)

    def page(self, *, cursor: str | None, limit: int) -> Page[ReportRecord]:
        table = report_rows.c
        statement = select(report_rows).order_by(table.created_at.desc(), table.id.desc())
        if cursor is not None:
            last = decode_cursor(cursor, _NEWEST_FIRST)
            older = and_(table.created_at == last.key, table.id < row_codec.storable(str(last.id)))
            statement = statement.where(or_(table.created_at < last.key, older))
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        next_cursor = None
        if len(rows) > limit:
            row = rows[limit - 1]
            next_cursor = encode_cursor(_NEWEST_FIRST, Position(key=row.created_at, id=row.id))
        return Page(items=tuple(_report_of(row) for row in rows[:limit]), next_cursor=next_cursor)

    def of_schedule(self, name: str) -> list[ReportRecord]:
        return [report for report in self._all() if report.schedule == name]

    def ids(self) -> set[str]:
        return set(self._connection.execute(select(report_rows.c.id)).scalars())

    def save(self, report: ReportRecord) -> None:
        body = {
            "title": report.title,
            "period": report.period,
            "since": report.since,
            "until": report.until,
            "created_by": report.created_by,
            "schedule": report.schedule,
            "error": report.error,
        }
        row = {
            "id": report.id,
            "state": report.state,
            "created_at": report.created_at,
            "body": row_codec.to_json(body),
        }
        replace_rows(self._connection, report_rows, [row])

    def delete(self, report_id: str) -> None:
        self._connection.execute(delete(report_rows).where(report_rows.c.id == report_id))

    def working(self) -> list[ReportRecord]:
        statement = select(report_rows).where(report_rows.c.state == ReportState.WORKING)
        rows = self._connection.execute(statement.order_by(report_rows.c.created_at, report_rows.c.id))
        return [_report_of(row) for row in rows]

    def schedules(self) -> list[ReportSchedule]:
        rows = self._connection.execute(select(report_schedule_rows).order_by(report_schedule_rows.c.name))
        return [_schedule_of(row) for row in rows]

    def save_schedule(self, schedule: ReportSchedule) -> None:
        body = {
            "period": schedule.period,
            "hour": schedule.hour,
            "weekday": schedule.weekday,
            "channels": schedule.channels,
            "enabled": schedule.enabled,
            "created_at": schedule.created_at,
            "last_until": schedule.last_until,
        }
        replace_rows(self._connection, report_schedule_rows, [{"name": schedule.name, "body": row_codec.to_json(body)}])

    def delete_schedule(self, name: str) -> None:
        self._connection.execute(delete(report_schedule_rows).where(report_schedule_rows.c.name == name))

    def _all(self) -> list[ReportRecord]:
        statement = select(report_rows).order_by(report_rows.c.created_at.desc(), report_rows.c.id.desc())
        return [_report_of(row) for row in self._connection.execute(statement)]


def _report_of(row: Any) -> ReportRecord:
    body = row_codec.from_json(row.body)
    return ReportRecord(
        id=row.id,
        state=ReportState(row.state),
        created_at=row.created_at,
        title=body["title"],
        period=ReportPeriod(body["period"]),
        since=body["since"],
        until=body["until"],
        created_by=body["created_by"],
        schedule=body["schedule"],
        error=body["error"],
    )


def _schedule_of(row: Any) -> ReportSchedule:
    body = row_codec.from_json(row.body)
    return ReportSchedule(
        name=row.name,
        period=ReportPeriod(body["period"]),
        hour=body["hour"],
        weekday=body["weekday"],
        channels=tuple(body["channels"]),
        enabled=body["enabled"],
        created_at=body["created_at"],
        last_until=body["last_until"],
    )
