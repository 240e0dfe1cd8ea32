"""Shares of apps."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, select

from corral.control.records import AppShare, AppShareKind
from corral.stores.database import row_codec
from corral.stores.database.statements import replace_rows
from corral.stores.schema.app_tables import app_share_rows


class SqlAppShareTable:
    """Implements `corral.control.ports.AppShareTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_job(self, job_id: str) -> list[AppShare]:
        number = row_codec.job_number(job_id)
        return [] if number is None else self._found(app_share_rows.c.job_id == number)

    def of_group(self, group: str) -> list[AppShare]:
        table = app_share_rows.c
        return self._found((table.kind == AppShareKind.GROUP.value) & (table.name == group))

    def save(self, share: AppShare) -> None:
        row = {
            "job_id": row_codec.required_job_number(share.job_id),
            "kind": share.kind.value,
            "name": row_codec.storable(share.name),
            "secret_hash": share.secret_hash,
            "created_at": share.created_at,
            "expires_at": share.expires_at,
        }
        replace_rows(self._connection, app_share_rows, [row])

    def delete(self, share: AppShare) -> None:
        table = app_share_rows.c
        self._connection.execute(
            delete(app_share_rows).where(
                table.job_id == row_codec.required_job_number(share.job_id),
                table.kind == share.kind.value,
                table.name == share.name,
            )
        )

    def _found(self, condition: ColumnElement[bool]) -> list[AppShare]:
        table = app_share_rows.c
        rows = self._connection.execute(
            select(app_share_rows).where(condition).order_by(table.job_id, table.kind, table.name)
        )
        return [
            AppShare(
                job_id=row_codec.job_id(row.job_id),
                kind=AppShareKind(row.kind),
                name=row.name,
                secret_hash=row.secret_hash,
                created_at=row.created_at,
                expires_at=row.expires_at,
            )
            for row in rows
        ]
