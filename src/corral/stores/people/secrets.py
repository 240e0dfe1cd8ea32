"""Secrets of users and groups, encrypted."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from corral.control.records import SecretRecord
from corral.core.people.budgets import Account, AccountKind
from corral.stores.database import row_codec
from corral.stores.database.statements import replace_rows
from corral.stores.schema.secret_tables import secret_rows


class SqlSecretTable:
    """Implements `corral.control.ports.SecretTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[SecretRecord]:
        table = secret_rows.c
        rows = self._connection.execute(select(secret_rows).order_by(table.name, table.owner_kind, table.owner))
        return [
            SecretRecord(
                owner=Account(kind=AccountKind(row.owner_kind), name=row.owner),
                name=row.name,
                value=row.value,
                set_by=row.set_by,
                set_at=row.set_at,
            )
            for row in rows
        ]

    def save(self, secret: SecretRecord) -> None:
        row = {
            "owner_kind": secret.owner.kind.value,
            "owner": row_codec.storable(secret.owner.name),
            "name": secret.name,
            "value": secret.value,
            "set_by": row_codec.storable(secret.set_by),
            "set_at": secret.set_at,
        }
        replace_rows(self._connection, secret_rows, [row])

    def delete(self, owner: Account, name: str) -> None:
        table = secret_rows.c
        self._connection.execute(
            delete(secret_rows).where(
                table.owner_kind == owner.kind.value, table.owner == owner.name, table.name == name
            )
        )
