"""Reports and their schedules: requests of operators, and the state of a report while the server makes it.

A report is asked for here and made by the server, outside of any transaction. It is `working` until then; a server
that dies over one finds it working at the next start and makes it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from corral.control.alerts import channels
from corral.control.errors import Invalid, NotFound, OverLimit, Taken
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import ReportPeriod, ReportRecord, ReportSchedule, ReportState
from corral.control.reports import report_texts
from corral.control.reports.report_data import DAY, Span
from corral.control.reports.report_schedules import due
from corral.core.names import RULE_NAME

SHORTEST_SECONDS, LONGEST_SECONDS = 60.0, 366 * DAY
#: Reports that may wait to be made at a time; each costs the server a moment.
MAX_WORKING = 20
#: The number of reports that are kept of each schedule.
KEPT_PER_SCHEDULE = 100
MAX_SCHEDULES = 50
MAX_ERROR = 500
#: The kind of notice that brings a report.
NOTICE = "report"
#: What stands on top of a report.
TITLES = {
    ReportPeriod.DAILY: "Daily report",
    ReportPeriod.WEEKLY: "Weekly report",
    ReportPeriod.MONTHLY: "Monthly report",
    ReportPeriod.CUSTOM: "Usage report",
}


# ------------------------------------------------------------------------------------------------ reports


def span_asked(now: float, *, period_seconds: float | None, since: float | None, until: float | None) -> Span:
    """The span that a request means: so long until now, or from then to then."""
    if (period_seconds is None) == (since is None):
        raise Invalid("give either a period such as 7d, or since (and until)", field="period")
    if period_seconds is not None and until is not None:
        raise Invalid("a period ends now: give since and until for one that does not", field="until")
    if until is not None and until > now:
        raise Invalid("the end of the span is in the future", field="until")
    end = now if until is None else until
    span = Span(since=end - period_seconds if since is None and period_seconds is not None else since or 0.0, until=end)
    field = "period" if since is None else "since"
    if span.seconds < SHORTEST_SECONDS:
        raise Invalid("a report covers at least a minute, and begins before it ends", field=field)
    if span.seconds > LONGEST_SECONDS:
        raise Invalid("a report covers at most 366 days", field=field, limit_days=366)
    if span.since < 0:
        raise Invalid("the span begins before all time", field=field)
    return span


def request(work: Work, caller: Caller, report_id: str, span: Span) -> ReportRecord:
    require_operator(caller, "make reports")
    waiting = work.tx.reports.working()
    if len(waiting) >= MAX_WORKING:
        raise OverLimit(f"{len(waiting)} reports are being made already: try again in a moment", limit=MAX_WORKING)
    report = _report(report_id, ReportPeriod.CUSTOM, span, work.now, caller.name)
    work.tx.reports.save(report)
    work.record(caller, "report.requested", report.id, detail=_detail(report))
    return report


def delete(work: Work, caller: Caller, report_id: str) -> None:
    """The caller removes the files when this is committed."""
    require_operator(caller, "make reports")
    report = existing(work.tx, report_id)
    work.tx.reports.delete(report_id)
    work.record(caller, "report.deleted", report_id, detail=_detail(report))


def file_name(report: ReportRecord, form: str) -> str:
    """The name of a report's file on the disk and in downloads, with its first and last day."""
    days = (datetime.fromtimestamp(at, UTC) for at in (report.since, report.until - 1))
    return f"corral-report-{'-'.join(f'{day:%Y%m%d}' for day in days)}.{form}"


def existing(tx: Transaction, report_id: str) -> ReportRecord:
    report = tx.reports.get(report_id)
    if report is None:
        raise NotFound(f"there is no report {report_id!r}", field="report")
    return report


def finish(work: Work, report_id: str, *, summary: str, attachments: Sequence[str]) -> ReportRecord | None:
    """Marks a report as ready, and queues a scheduled one for its channels. None if it was deleted meanwhile: then its
    files can be removed.
    """
    report = work.tx.reports.get(report_id)
    if report is None:
        return None
    made = replace(report, state=ReportState.READY, error="")
    work.tx.reports.save(made)
    work.record(SYSTEM, "report.ready", report_id, detail=_detail(made))
    schedule = next((item for item in work.tx.reports.schedules() if item.name == made.schedule), None)
    # One that was made before is not sent a second time.
    if schedule is not None and schedule.channels and report.state is ReportState.WORKING:
        channels.enqueue(work, schedule.channels, NOTICE, f"[corral] {made.title}", summary, attachments)
    return made


def fail(work: Work, report_id: str, error: str) -> None:
    report = work.tx.reports.get(report_id)
    if report is None:
        return
    failed = replace(report, state=ReportState.FAILED, error=error[:MAX_ERROR])
    work.tx.reports.save(failed)
    work.record(SYSTEM, "report.failed", report_id, detail={**_detail(failed), "error": failed.error})


# ------------------------------------------------------------------------------------------------ schedules


def create_schedule(work: Work, caller: Caller, schedule: ReportSchedule) -> ReportSchedule:
    known = work.tx.reports.schedules()
    _check(work, caller, schedule)
    if any(other.name == schedule.name for other in known):
        raise Taken(f"there is a schedule {schedule.name!r} already", field="name", name=schedule.name)
    if len(known) >= MAX_SCHEDULES:
        raise OverLimit(f"there are {len(known)} schedules already", limit=MAX_SCHEDULES)
    made = replace(schedule, created_at=work.now, last_until=None)
    work.tx.reports.save_schedule(made)
    work.record(caller, "report-schedule.created", made.name, detail=_schedule_detail(made))
    return made


def edit_schedule(work: Work, caller: Caller, name: str, changes: Mapping[str, Any]) -> ReportSchedule:
    before = existing_schedule(work.tx, name)
    after = replace(before, **changes)
    _check(work, caller, after)
    if after != before:
        work.tx.reports.save_schedule(after)
        work.record(caller, "report-schedule.edited", name, detail=_schedule_detail(after))
    return after


def delete_schedule(work: Work, caller: Caller, name: str) -> None:
    """The reports that it has made stay."""
    require_operator(caller, "make reports")
    existing_schedule(work.tx, name)
    work.tx.reports.delete_schedule(name)
    work.record(caller, "report-schedule.deleted", name)


def existing_schedule(tx: Transaction, name: str) -> ReportSchedule:
    for schedule in tx.reports.schedules():
        if schedule.name == name:
            return schedule
    raise NotFound(f"there is no schedule {name!r}", field="schedule")


def run_schedules(work: Work, report_ids: Sequence[str]) -> list[ReportRecord]:
    """Ask for what is due, and say in the same transaction that it was asked for: a crash neither loses nor doubles a
    report. `report_ids` are fresh ids, enough for every schedule."""
    asked = []
    for schedule, report_id in zip(work.tx.reports.schedules(), report_ids, strict=False):
        span = due(schedule, work.now)
        if span is None:
            continue
        report = _report(report_id, schedule.period, span, work.now, SYSTEM.name, schedule.name)
        work.tx.reports.save(report)
        work.tx.reports.save_schedule(replace(schedule, last_until=span.until))
        work.record(SYSTEM, "report.requested", report.id, detail=_detail(report))
        asked.append(report)
    return asked


def drop_old(work: Work) -> list[str]:
    """Deletes all but the newest reports of each schedule; returns their ids. The caller removes their files."""
    dropped = []
    for schedule in work.tx.reports.schedules():
        for report in work.tx.reports.of_schedule(schedule.name)[KEPT_PER_SCHEDULE:]:
            work.tx.reports.delete(report.id)
            work.record(SYSTEM, "report.deleted", report.id, detail=_detail(report))
            dropped.append(report.id)
    return dropped


# ------------------------------------------------------------------------------------------------ inside


def _report(
    report_id: str, period: ReportPeriod, span: Span, now: float, created_by: str, schedule: str = ""
) -> ReportRecord:
    return ReportRecord(
        id=report_id,
        title=f"{TITLES[period]}, {report_texts.span_text(span)}",
        period=period,
        since=span.since,
        until=span.until,
        created_at=now,
        created_by=created_by,
        schedule=schedule,
    )


def _check(work: Work, caller: Caller, schedule: ReportSchedule) -> None:
    require_operator(caller, "make reports")
    if not RULE_NAME.fullmatch(schedule.name):
        raise Invalid(
            f"the schedule name {schedule.name!r} is not allowed: up to 63 small letters, digits and -", field="name"
        )
    if schedule.period is ReportPeriod.CUSTOM:
        raise Invalid("a schedule is daily, weekly or monthly", field="period")
    if not 0 <= schedule.hour <= 23:
        raise Invalid("the hour is between 0 and 23, in UTC", field="hour", asked=schedule.hour)
    if not 0 <= schedule.weekday <= 6:
        raise Invalid("the weekday is between 0 (Monday) and 6 (Sunday)", field="weekday", asked=schedule.weekday)
    known = sorted(channel.name for channel in work.tx.channels.all()) if schedule.channels else []
    unknown = [name for name in schedule.channels if name not in known]
    if unknown:
        there = f"there are: {', '.join(known)}" if known else "there is none yet"
        raise Invalid(f"there is no channel {unknown[0]!r}; {there}", field="channels", known=known)


def _detail(report: ReportRecord) -> dict[str, Any]:
    return {"title": report.title, "schedule": report.schedule}


def _schedule_detail(schedule: ReportSchedule) -> dict[str, Any]:
    return {
        "period": schedule.period,
        "hour": schedule.hour,
        "channels": [*schedule.channels],
        "enabled": schedule.enabled,
    }
