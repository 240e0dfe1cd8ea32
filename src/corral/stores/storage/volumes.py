"""Volumes and object stores. Secrets are encrypted before they reach this module."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, delete, select

from corral.control.records import (
    ObjectStoreKind,
    ObjectStoreRecord,
    Share,
    ShareKind,
    ShareMode,
    VolumeRecord,
    VolumeState,
)
from corral.core.storage.volumes import VolumeType
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.database.statements import count_up, replace_rows
from corral.stores.schema.volume_tables import object_store_rows, volume_rows

PREFIX = "v-"


class SqlVolumeTable:
    """Implements `corral.control.ports.VolumeTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def next_id(self) -> str:
        return f"{PREFIX}{count_up(self._connection, 'volume', 1)}"

    def all(self) -> list[VolumeRecord]:
        return self._found(select(volume_rows))

    def get(self, volume_id: str) -> VolumeRecord | None:
        return next(iter(self._found(select(volume_rows).where(volume_rows.c.id == _number(volume_id)))), None)

    def named(self, name: str) -> list[VolumeRecord]:
        return self._found(select(volume_rows).where(volume_rows.c.name == name))

    def of_owner(self, owner: str) -> list[VolumeRecord]:
        return self._found(select(volume_rows).where(volume_rows.c.owner == owner))

    def save(self, volume: VolumeRecord) -> None:
        replace_rows(self._connection, volume_rows, [_row_of(volume)])

    def delete(self, volume_id: str) -> None:
        self._connection.execute(delete(volume_rows).where(volume_rows.c.id == _number(volume_id)))

    def object_stores(self) -> list[ObjectStoreRecord]:
        rows = self._connection.execute(select(object_store_rows).order_by(object_store_rows.c.name))
        return [_store_of(row) for row in rows]

    def object_store(self, name: str) -> ObjectStoreRecord | None:
        row = self._connection.execute(select(object_store_rows).where(object_store_rows.c.name == name)).first()
        return None if row is None else _store_of(row)

    def save_object_store(self, store: ObjectStoreRecord) -> None:
        names = [column.name for column in object_store_rows.columns]
        row = {**{name: getattr(store, name) for name in names}, "kind": store.kind.value}
        replace_rows(self._connection, object_store_rows, [row])

    def delete_object_store(self, name: str) -> None:
        self._connection.execute(delete(object_store_rows).where(object_store_rows.c.name == name))

    def _found(self, statement: Select[Any]) -> list[VolumeRecord]:
        rows = self._connection.execute(statement.order_by(volume_rows.c.id))
        return readable(self._connection, "volumes", rows, _volume_of)


def _number(volume_id: str) -> int:
    """The number of an id; -1, which no row has, if the text is no id."""
    digits = volume_id.removeprefix(PREFIX)
    is_id = volume_id.startswith(PREFIX) and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_id and not digits.startswith("0") else -1


def _row_of(volume: VolumeRecord) -> dict[str, Any]:
    return {
        "id": _number(volume.id),
        "owner": volume.owner,
        "name": volume.name,
        "type": volume.type.value,
        "cluster": volume.cluster,
        "size_bytes": volume.size_bytes,
        "used_bytes": volume.used_bytes,
        "measured_at": volume.measured_at,
        "object_store": volume.object_store,
        "prefix": volume.prefix,
        "state": volume.state.value,
        "message": volume.message,
        "shared": row_codec.to_json([[share.kind.value, share.name, share.mode.value] for share in volume.shared]),
        "read_only": volume.read_only,
        "created_at": volume.created_at,
        "description": volume.description,
    }


def _volume_of(row: Any) -> VolumeRecord:
    return VolumeRecord(
        id=f"{PREFIX}{row.id}",
        name=row.name,
        owner=row.owner,
        type=VolumeType(row.type),
        cluster=row.cluster,
        size_bytes=row.size_bytes,
        used_bytes=row.used_bytes,
        measured_at=row.measured_at,
        object_store=row.object_store,
        prefix=row.prefix,
        state=VolumeState(row.state),
        message=row.message,
        shared=tuple(
            Share(kind=ShareKind(kind), name=name, mode=ShareMode(mode))
            for kind, name, mode in row_codec.from_json(row.shared)
        ),
        read_only=row.read_only,
        created_at=row.created_at,
        description=row.description,
    )


def _store_of(row: Any) -> ObjectStoreRecord:
    return ObjectStoreRecord(**{**row._mapping, "kind": ObjectStoreKind(row.kind)})
