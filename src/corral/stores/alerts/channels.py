"""Channels, and the notices that were sent or wait to be sent. Addresses are stored encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, text

from corral.control.records import ChannelRecord, DeliveryRecord, DeliveryState, Page
from corral.core.alerts.model import Severity
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.statements import count_up, replace_rows
from corral.stores.schema.monitoring_tables import STILL_WAITING, channel_rows, delivery_rows

_NEWEST_FIRST = Sort(field="delivery", descending=True, type=int)
_BODY = (
    "kind",
    "title",
    "body",
    "alert_ids",
    "rules",
    "attachments",
    "attempts",
    "next_try_at",
    "sent_at",
    "error",
)
_WAITING = select(delivery_rows).where(text(STILL_WAITING)).order_by(delivery_rows.c.id)
_BY_ID = select(delivery_rows).where(delivery_rows.c.id == bindparam("wanted"))


class SqlChannelTable:
    """Implements `corral.control.ports.ChannelTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[ChannelRecord]:
        rows = self._connection.execute(select(channel_rows).order_by(channel_rows.c.name))
        return [
            ChannelRecord(
                name=row.name,
                url=row.url,
                shown=row.shown,
                enabled=row.enabled,
                min_severity=Severity(row.min_severity),
                description=row.description,
                from_config=row.from_config,
                created_at=row.created_at,
            )
            for row in rows
        ]

    def save(self, channel: ChannelRecord) -> None:
        row = {
            "name": channel.name,
            "url": channel.url,
            "shown": channel.shown,
            "enabled": channel.enabled,
            "min_severity": channel.min_severity.value,
            "description": channel.description,
            "from_config": channel.from_config,
            "created_at": channel.created_at,
        }
        replace_rows(self._connection, channel_rows, [row])

    def delete(self, name: str) -> None:
        self._connection.execute(delete(channel_rows).where(channel_rows.c.name == name))

    def add_deliveries(self, deliveries: Sequence[DeliveryRecord]) -> list[DeliveryRecord]:
        if not deliveries:
            return []
        first = count_up(self._connection, "delivery", len(deliveries)) - len(deliveries) + 1
        numbered = [replace(delivery, id=number) for number, delivery in enumerate(deliveries, first)]
        self._connection.execute(insert(delivery_rows), [_row(delivery) for delivery in numbered])
        return numbered

    def save_delivery(self, delivery: DeliveryRecord) -> None:
        replace_rows(self._connection, delivery_rows, [_row(delivery)])

    def delivery(self, delivery_id: int) -> DeliveryRecord | None:
        if not 0 < delivery_id <= row_codec.MAX_INTEGER:
            return None
        row = self._connection.execute(_BY_ID, {"wanted": delivery_id}).one_or_none()
        return None if row is None else _delivery_of(row)

    def waiting(self) -> list[DeliveryRecord]:
        return [_delivery_of(row) for row in self._connection.execute(_WAITING)]

    def deliveries(self, channel: str | None, *, cursor: str | None, limit: int) -> Page[DeliveryRecord]:
        statement = select(delivery_rows).order_by(delivery_rows.c.id.desc())
        if channel is not None:
            statement = statement.where(delivery_rows.c.channel == channel)
        if cursor is not None:
            statement = statement.where(delivery_rows.c.id < decode_cursor(cursor, _NEWEST_FIRST).id)
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        next_cursor = None
        if len(rows) > limit:
            last = rows[limit - 1].id
            next_cursor = encode_cursor(_NEWEST_FIRST, Position(key=last, id=last))
        return Page(items=tuple(_delivery_of(row) for row in rows[:limit]), next_cursor=next_cursor)

    def prune(self, before: float) -> int:
        done = delivery_rows.c.state != DeliveryState.WAITING.value
        statement = delete(delivery_rows).where(done, delivery_rows.c.created_at < before)
        return self._connection.execute(statement).rowcount


def _row(delivery: DeliveryRecord) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "channel": delivery.channel,
        "state": delivery.state.value,
        "created_at": delivery.created_at,
        "body": row_codec.to_json({name: getattr(delivery, name) for name in _BODY}),
    }


def _delivery_of(row: Any) -> DeliveryRecord:
    body = row_codec.from_json(row.body)
    for name in ("alert_ids", "rules", "attachments"):
        body[name] = tuple(body[name])
    return DeliveryRecord(
        id=row.id, channel=row.channel, state=DeliveryState(row.state), created_at=row.created_at, **body
    )
