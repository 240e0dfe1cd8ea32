"""Where items of users' inboxes are sent. Addresses are stored encrypted."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, delete, select

from corral.control.records import PersonalChannelKind, PersonalChannelRecord
from corral.stores.database import row_codec
from corral.stores.database.statements import replace_rows
from corral.stores.schema.secret_tables import personal_channel_rows

_BODY = (
    "shown",
    "kinds",
    "enabled",
    "created_at",
    "code_digest",
    "code_until",
    "wrong_codes",
    "sent_until",
    "tries",
    "next_try_at",
    "sent_at",
    "error",
)


class SqlPersonalChannelTable:
    """Implements `corral.control.ports.PersonalChannelTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[PersonalChannelRecord]:
        return self._found(select(personal_channel_rows))

    def of_user(self, user: str) -> list[PersonalChannelRecord]:
        wanted = personal_channel_rows.c.user_name == row_codec.storable(user)
        return self._found(select(personal_channel_rows).where(wanted))

    def save(self, channel: PersonalChannelRecord) -> None:
        row = {
            "user_name": row_codec.storable(channel.user),
            "name": channel.name,
            "kind": channel.kind.value,
            "address": channel.address,
            "body": row_codec.to_json({name: getattr(channel, name) for name in _BODY}),
        }
        replace_rows(self._connection, personal_channel_rows, [row])

    def delete(self, user: str, name: str) -> None:
        table = personal_channel_rows.c
        self._connection.execute(
            delete(personal_channel_rows).where(table.user_name == row_codec.storable(user), table.name == name)
        )

    def _found(self, statement: Select[Any]) -> list[PersonalChannelRecord]:
        table = personal_channel_rows.c
        return [_channel_of(row) for row in self._connection.execute(statement.order_by(table.user_name, table.name))]


def _channel_of(row: Any) -> PersonalChannelRecord:
    body = row_codec.from_json(row.body)
    body["kinds"] = tuple(body["kinds"])
    return PersonalChannelRecord(
        user=row.user_name, name=row.name, kind=PersonalChannelKind(row.kind), address=row.address, **body
    )
