"""Keys of requests, with results and answers."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from corral.control.records import RequestKeyRecord
from corral.stores.schema.request_tables import request_key_rows


class SqlRequestKeyTable:
    """Implements `corral.control.ports.RequestKeyTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, user: str, key: str) -> RequestKeyRecord | None:
        table = request_key_rows.c
        statement = select(request_key_rows).where(table.user_name == user, table.key == key)
        row = self._connection.execute(statement).one_or_none()
        if row is None:
            return None
        return RequestKeyRecord(
            user=row.user_name,
            key=row.key,
            digest=row.digest,
            at=row.at,
            result=row.result,
            status=row.status,
            answer=None if row.answer is None else bytes(row.answer),
        )

    def add(self, record: RequestKeyRecord) -> None:
        self._connection.execute(
            request_key_rows.insert(),
            {
                "user_name": record.user,
                "key": record.key,
                "digest": record.digest,
                "at": record.at,
                "result": record.result,
            },
        )

    def keep_answer(self, user: str, key: str, status: int, answer: bytes) -> None:
        table = request_key_rows.c
        self._connection.execute(
            update(request_key_rows)
            .where(table.user_name == user, table.key == key)
            .values(status=status, answer=answer)
        )

    def remove(self, user: str, key: str) -> None:
        table = request_key_rows.c
        self._connection.execute(delete(request_key_rows).where(table.user_name == user, table.key == key))

    def prune(self, before: float) -> int:
        return self._connection.execute(delete(request_key_rows).where(request_key_rows.c.at < before)).rowcount
