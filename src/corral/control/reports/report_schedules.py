"""When scheduled reports are due, and for which span: pure arithmetic in UTC, so no clock is ever put forward or back.

A daily report covers the day before, a weekly one of the seven days before its weekday, a monthly one of the month
before. It is made at its hour of the day on which the span has ended.
"""

from __future__ import annotations

from calendar import timegm
from datetime import UTC, datetime

from corral.control.records import ReportPeriod, ReportSchedule
from corral.control.reports.report_data import DAY, HOUR, Span

#: Midnight of a Monday.
_MONDAY = 4 * DAY


def due(schedule: ReportSchedule, now: float) -> Span | None:
    """The span to report now, if any. Of several missed spans only the last one is reported."""
    if not schedule.enabled:
        return None
    until = _last_end(schedule, now)
    if schedule.last_until is None:
        # A new schedule begins with what ends after its creation.
        return _span_to(schedule, until) if _runs_at(schedule, until) > schedule.created_at else None
    return _span_to(schedule, until) if until > schedule.last_until else None


def next_run(schedule: ReportSchedule, now: float) -> float | None:
    """When the next report will be made; None while it is switched off."""
    if not schedule.enabled:
        return None
    if due(schedule, now) is not None:
        return now
    until = _next_end(schedule, _last_end(schedule, now))
    while schedule.last_until is not None and until <= schedule.last_until:
        until = _next_end(schedule, until)
    return _runs_at(schedule, until)


def _runs_at(schedule: ReportSchedule, until: float) -> float:
    return until + schedule.hour * HOUR


def _last_end(schedule: ReportSchedule, now: float) -> float:
    """The end of the last span whose report could have been made by now."""
    at = now - schedule.hour * HOUR
    match schedule.period:
        case ReportPeriod.WEEKLY:
            first = _MONDAY + schedule.weekday * DAY
            return first + (at - first) // (7 * DAY) * 7 * DAY
        case ReportPeriod.MONTHLY:
            moment = datetime.fromtimestamp(at, UTC)
            return _month_begin(moment.year, moment.month)
        case _:
            return at // DAY * DAY


def _next_end(schedule: ReportSchedule, end: float) -> float:
    match schedule.period:
        case ReportPeriod.WEEKLY:
            return end + 7 * DAY
        case ReportPeriod.MONTHLY:
            moment = datetime.fromtimestamp(end, UTC)
            return _month_begin(moment.year, moment.month + 1)
        case _:
            return end + DAY


def _span_to(schedule: ReportSchedule, until: float) -> Span:
    match schedule.period:
        case ReportPeriod.WEEKLY:
            return Span(since=until - 7 * DAY, until=until)
        case ReportPeriod.MONTHLY:
            moment = datetime.fromtimestamp(until, UTC)
            return Span(since=_month_begin(moment.year, moment.month - 1), until=until)
        case _:
            return Span(since=until - DAY, until=until)


def _month_begin(year: int, month: int) -> float:
    """Midnight of the first; month 0 is the December before, and 13 the January after."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return float(timegm((year, month, 1, 0, 0, 0)))
