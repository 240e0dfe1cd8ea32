"""Implements `corral.control.ports.UsageTable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from corral.control.records import *  # noqa: F403
from corral.core.alerts.model import *  # noqa: F403
from corral.core.health.model import *  # noqa: F403
from corral.core.measuring import Measured
from corral.stores.sight_tables import usage_rows  # noqa: F401


class SqlUsageTable:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def save(self, records: Sequence[UsageRecord]) -> None:
        raise NotImplementedError

    def save_measured(self, measured: Mapping[str, Measured]) -> None:
        raise NotImplementedError

    def of_job(self, job_id: str) -> list[UsageRecord]:
        raise NotImplementedError

    def open(self) -> list[UsageRecord]:
        raise NotImplementedError

    def between(self, since: float, until: float) -> list[UsageRecord]:
        raise NotImplementedError

    def prune(self, before: float) -> int:
        raise NotImplementedError
