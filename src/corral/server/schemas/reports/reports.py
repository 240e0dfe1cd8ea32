"""API schemas: reports and their schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.records import ReportPeriod, ReportRecord, ReportSchedule, ReportState
from corral.control.reports.report_schedules import next_run
from corral.server.reports.report_worker import FORMATS
from corral.server.schemas.base import Body, Duration, Label, View, rfc3339, rfc3339_or_none

Moment = Annotated[Label, Field(min_length=1, examples=["2026-01-03T10:00:00Z"])]
Period = Literal["daily", "weekly", "monthly"]


class ReportCreate(Body):
    """A period that ends now, or a span from `since` until `until` (now when left out)."""

    period: Duration | None = None
    since: Moment | None = None
    until: Moment | None = None


class ReportView(View):
    id: str
    title: str
    period: ReportPeriod
    since: str
    until: str
    created_at: str
    created_by: str
    #: the schedule that requested it; null if a user did
    schedule: str | None
    state: ReportState
    #: why the report failed
    error: str
    #: formats that can be downloaded
    formats: list[str]


class ScheduleEdit(Body):
    """Changes to a schedule. Fields that are left out keep their values."""

    period: Period = "weekly"
    hour: Annotated[int, Field(ge=0, le=23, description="Hour of the day, in UTC.")] = 6
    weekday: Annotated[int, Field(ge=0, le=6, description="Monday is 0; only for weekly schedules.")] = 0
    channels: Annotated[list[Label], Field(max_length=50)] = Field(
        default_factory=list, description="Channels that the report is sent to."
    )
    enabled: bool = True


class ScheduleCreate(ScheduleEdit):
    name: Label


class ScheduleView(View):
    name: str
    period: ReportPeriod
    hour: int
    weekday: int
    channels: list[str]
    enabled: bool
    created_at: str
    #: the end of the last span that was reported
    last_until: str | None
    next_run: str | None


def report_view(report: ReportRecord) -> ReportView:
    return ReportView(
        id=report.id,
        title=report.title,
        period=report.period,
        since=rfc3339(report.since),
        until=rfc3339(report.until),
        created_at=rfc3339(report.created_at),
        created_by=report.created_by,
        schedule=report.schedule or None,
        state=report.state,
        error=report.error,
        formats=list(FORMATS) if report.state is ReportState.READY else [],
    )


def changes_of(body: ScheduleEdit) -> dict[str, Any]:
    """The fields that were given, as the records have them."""
    changes = body.model_dump(exclude_unset=True)
    if "period" in changes:
        changes["period"] = ReportPeriod(changes["period"])
    if "channels" in changes:
        changes["channels"] = tuple(dict.fromkeys(changes["channels"]))
    return changes


def schedule_of(body: ScheduleCreate) -> ReportSchedule:
    return ReportSchedule(**{"period": ReportPeriod.WEEKLY, **changes_of(body)})


def schedule_view(schedule: ReportSchedule, now: float) -> ScheduleView:
    return ScheduleView(
        name=schedule.name,
        period=schedule.period,
        hour=schedule.hour,
        weekday=schedule.weekday,
        channels=list(schedule.channels),
        enabled=schedule.enabled,
        created_at=rfc3339(schedule.created_at),
        last_until=rfc3339_or_none(schedule.last_until),
        next_run=rfc3339_or_none(next_run(schedule, now)),
    )
