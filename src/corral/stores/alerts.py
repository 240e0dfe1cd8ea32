"""Implements `corral.control.ports.AlertTable`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from corral.control.records import *  # noqa: F403
from corral.core.alerts.model import *  # noqa: F403
from corral.core.health.model import *  # noqa: F403
from corral.stores.sight_tables import alert_rows, alert_rule_rows, silence_rows  # noqa: F401


class SqlAlertTable:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rules(self) -> list[AlertRule]:
        raise NotImplementedError

    def save_rule(self, rule: AlertRule) -> None:
        raise NotImplementedError

    def delete_rule(self, name: str) -> None:
        raise NotImplementedError

    def add(self, alerts: Sequence[Alert]) -> list[Alert]:
        raise NotImplementedError

    def save(self, alerts: Sequence[Alert]) -> None:
        raise NotImplementedError

    def delete(self, alert_ids: Sequence[int]) -> None:
        raise NotImplementedError

    def get(self, alert_id: int) -> Alert | None:
        raise NotImplementedError

    def live(self) -> list[Alert]:
        raise NotImplementedError

    def page(self, where: AlertFilter, *, cursor: str | None, limit: int) -> Page[Alert]:
        raise NotImplementedError

    def silences(self) -> list[Silence]:
        raise NotImplementedError

    def save_silence(self, silence: Silence) -> None:
        raise NotImplementedError

    def delete_silence(self, silence_id: str) -> None:
        raise NotImplementedError

    def prune(self, before: float) -> int:
        raise NotImplementedError
