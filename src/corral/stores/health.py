"""Implements `corral.control.ports.HealthTable`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from corral.control.records import *  # noqa: F403
from corral.core.alerts.model import *  # noqa: F403
from corral.core.health.model import *  # noqa: F403
from corral.stores.sight_tables import condition_rows, idle_warning_rows  # noqa: F401


class SqlHealthTable:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def conditions(self) -> dict[str, Condition]:
        raise NotImplementedError

    def save_conditions(self, conditions: Sequence[Condition]) -> None:
        raise NotImplementedError

    def delete_conditions(self, gpu_ids: Sequence[str]) -> None:
        raise NotImplementedError

    def idle_warnings(self) -> dict[str, IdleWarning]:
        raise NotImplementedError

    def save_idle_warning(self, warning: IdleWarning) -> None:
        raise NotImplementedError

    def delete_idle_warnings(self, job_ids: Sequence[str]) -> None:
        raise NotImplementedError
