"""Maintenance windows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, select

from corral.control.records import MaintenanceRecord
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.database.statements import replace_rows
from corral.stores.schema.scheduling_tables import maintenance_rows

_ALL = select(maintenance_rows).order_by(maintenance_rows.c.name)


class SqlMaintenanceTable:
    """Implements `corral.control.ports.MaintenanceTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[MaintenanceRecord]:
        return readable(self._connection, "maintenance_windows", self._connection.execute(_ALL), _record_of)

    def save(self, record: MaintenanceRecord) -> None:
        row = {
            "name": record.name,
            "nodes": row_codec.encode_names(record.nodes),
            "since": record.since,
            "until": record.until,
            "every_days": record.every_days,
            "drain_seconds": record.drain_seconds,
            "note": record.note,
            "created_by": record.created_by,
            "created_at": record.created_at,
            "begun": row_codec.encode_names(record.begun),
        }
        replace_rows(self._connection, maintenance_rows, [row])

    def delete(self, name: str) -> None:
        self._connection.execute(delete(maintenance_rows).where(maintenance_rows.c.name == name))


def _record_of(row: Any) -> MaintenanceRecord:
    return MaintenanceRecord(
        name=row.name,
        nodes=row_codec.decode_names(str, row.nodes),
        since=row.since,
        until=row.until,
        every_days=row.every_days,
        drain_seconds=row.drain_seconds,
        note=row.note,
        created_by=row.created_by,
        created_at=row.created_at,
        begun=row_codec.decode_names(str, row.begun),
    )
