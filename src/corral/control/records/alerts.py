"""Records of channels, deliveries and reports, and the filter of alert lists."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.alerts.model import AlertState, Severity


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelRecord:
    """A destination of notices."""

    name: str
    #: encrypted; never shown
    url: str
    #: the address without its secrets
    shown: str
    enabled: bool = True
    #: alerts below this severity are not sent here
    min_severity: Severity = Severity.INFO
    description: str = ""
    #: it came from the configuration file and follows it
    from_config: bool = False
    created_at: float = 0.0


class DeliveryState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryRecord:
    """One notice to one channel."""

    id: int = 0
    channel: str
    #: fired, resolved, test, report, idle
    kind: str
    title: str
    body: str
    #: the alerts in the notice
    alert_ids: tuple[int, ...] = ()
    #: the rules of those alerts
    rules: tuple[str, ...] = ()
    #: files that go with it
    attachments: tuple[str, ...] = ()
    state: DeliveryState = DeliveryState.WAITING
    created_at: float = 0.0
    attempts: int = 0
    next_try_at: float = 0.0
    sent_at: float | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertFilter:
    states: tuple[AlertState, ...] = ()
    severities: tuple[Severity, ...] = ()
    rule: str | None = None
    subject: str | None = None
    owner: str | None = None
    #: when the alert began: from then on, and before then
    since: float | None = None
    until: float | None = None


class ReportPeriod(StrEnum):
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    #: a span that a user asked for
    CUSTOM = "custom"


class ReportState(StrEnum):
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportRecord:
    id: str
    title: str
    period: ReportPeriod
    since: float
    until: float
    created_at: float
    created_by: str
    #: the schedule that asked for it; "" for a person
    schedule: str = ""
    state: ReportState = ReportState.WORKING
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSchedule:
    name: str
    period: ReportPeriod
    #: the hour of the day, in UTC
    hour: int = 6
    #: day of the week, Monday is 0; only for weekly schedules
    weekday: int = 0
    channels: tuple[str, ...] = ()
    enabled: bool = True
    created_at: float = 0.0
    #: the end of the last span that was reported
    last_until: float | None = None
