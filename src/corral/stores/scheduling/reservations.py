"""GPUs that are set aside for users and groups."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, select

from corral.control.records import ReservationRecord
from corral.core.scheduling.reservations.reservation import Reservation
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.database.statements import replace_rows
from corral.stores.schema.scheduling_tables import reservation_rows

_ALL = select(reservation_rows).order_by(reservation_rows.c.name)


class SqlReservationTable:
    """Implements `corral.control.ports.ReservationTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[ReservationRecord]:
        return readable(self._connection, "reservations", self._connection.execute(_ALL), _record_of)

    def get(self, name: str) -> ReservationRecord | None:
        row = self._connection.execute(_ALL.where(reservation_rows.c.name == name)).one_or_none()
        return None if row is None else _record_of(row)

    def save(self, record: ReservationRecord) -> None:
        reservation = record.reservation
        row = {
            "name": reservation.name,
            "pool": reservation.pool,
            "model": record.model,
            "gpus": row_codec.encode_names(reservation.gpus),
            "users": row_codec.encode_names(reservation.users),
            "groups": row_codec.encode_names(reservation.groups),
            "since": reservation.since,
            "until": reservation.until,
            "lends": reservation.lends,
            "is_over": record.is_over,
            "note": record.note,
            "created_by": record.created_by,
            "created_at": record.created_at,
        }
        replace_rows(self._connection, reservation_rows, [row])

    def delete(self, name: str) -> None:
        self._connection.execute(delete(reservation_rows).where(reservation_rows.c.name == name))

    def prune(self, before: float) -> int:
        return self._connection.execute(delete(reservation_rows).where(reservation_rows.c.until < before)).rowcount


def _record_of(row: Any) -> ReservationRecord:
    return ReservationRecord(
        reservation=Reservation(
            name=row.name,
            pool=row.pool,
            gpus=row_codec.decode_names(str, row.gpus),
            users=row_codec.decode_names(str, row.users),
            groups=row_codec.decode_names(str, row.groups),
            since=row.since,
            until=row.until,
            lends=row.lends,
        ),
        model=row.model,
        is_over=row.is_over,
        note=row.note,
        created_by=row.created_by,
        created_at=row.created_at,
    )
