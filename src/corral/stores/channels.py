"""Implements `corral.control.ports.ChannelTable`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from corral.control.records import *  # noqa: F403
from corral.core.alerts.model import *  # noqa: F403
from corral.core.health.model import *  # noqa: F403
from corral.stores.sight_tables import channel_rows, delivery_rows  # noqa: F401


class SqlChannelTable:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[ChannelRecord]:
        raise NotImplementedError

    def save(self, channel: ChannelRecord) -> None:
        raise NotImplementedError

    def delete(self, name: str) -> None:
        raise NotImplementedError

    def add_deliveries(self, deliveries: Sequence[DeliveryRecord]) -> list[DeliveryRecord]:
        raise NotImplementedError

    def save_delivery(self, delivery: DeliveryRecord) -> None:
        raise NotImplementedError

    def waiting(self) -> list[DeliveryRecord]:
        raise NotImplementedError

    def deliveries(self, channel: str | None, *, cursor: str | None, limit: int) -> Page[DeliveryRecord]:
        raise NotImplementedError

    def prune(self, before: float) -> int:
        raise NotImplementedError
