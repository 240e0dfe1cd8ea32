"""Tables of alerts, channels and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from corral.control.records import (
    AlertFilter,
    ChannelRecord,
    DeliveryRecord,
    Page,
    ReportRecord,
    ReportSchedule,
)
from corral.core.alerts.model import Alert, AlertRule, Silence


class AlertTable(Protocol):
    def rules(self) -> list[AlertRule]:
        """Sorted by name."""

    def save_rule(self, rule: AlertRule) -> None:
        """Insert or replace by name."""

    def delete_rule(self, name: str) -> None: ...

    def add(self, alerts: Sequence[Alert]) -> list[Alert]:
        """The same alerts with their ids, growing without repetition."""

    def save(self, alerts: Sequence[Alert]) -> None: ...

    def delete(self, alert_ids: Sequence[int]) -> None:
        """Deletes alerts that ended before they fired."""

    def get(self, alert_id: int) -> Alert | None: ...

    def live(self) -> list[Alert]:
        """Pending and firing."""

    def page(self, where: AlertFilter, *, cursor: str | None, limit: int) -> Page[Alert]:
        """Newest first. Raises ValueError for a bad cursor."""

    def silences(self) -> list[Silence]:
        """The silences, without deleted ones, sorted by their end."""

    def save_silence(self, silence: Silence) -> None: ...

    def delete_silence(self, silence_id: str) -> None: ...

    def prune(self, before: float) -> int:
        """Drop alerts that were resolved, and silences that ended, earlier."""


class ChannelTable(Protocol):
    def all(self) -> list[ChannelRecord]:
        """Sorted by name."""

    def save(self, channel: ChannelRecord) -> None:
        """Insert or replace by name."""

    def delete(self, name: str) -> None:
        """Deletes the channel; its deliveries are kept."""

    def add_deliveries(self, deliveries: Sequence[DeliveryRecord]) -> list[DeliveryRecord]:
        """The same with their ids."""

    def save_delivery(self, delivery: DeliveryRecord) -> None: ...

    def delivery(self, delivery_id: int) -> DeliveryRecord | None: ...

    def waiting(self) -> list[DeliveryRecord]:
        """Oldest first."""

    def deliveries(self, channel: str | None, *, cursor: str | None, limit: int) -> Page[DeliveryRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def prune(self, before: float) -> int:
        """Drop deliveries that were made or given up, and created earlier."""


class ReportTable(Protocol):
    def get(self, report_id: str) -> ReportRecord | None: ...

    def page(self, *, cursor: str | None, limit: int) -> Page[ReportRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def of_schedule(self, name: str) -> list[ReportRecord]:
        """The reports of this schedule, newest first."""

    def ids(self) -> set[str]: ...

    def save(self, report: ReportRecord) -> None:
        """Insert or replace by id."""

    def delete(self, report_id: str) -> None: ...

    def working(self) -> list[ReportRecord]:
        """Oldest first."""

    def schedules(self) -> list[ReportSchedule]:
        """Sorted by name."""

    def save_schedule(self, schedule: ReportSchedule) -> None:
        """Insert or replace by name."""

    def delete_schedule(self, name: str) -> None: ...
