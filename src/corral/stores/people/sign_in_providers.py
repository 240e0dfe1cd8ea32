"""Sign-in providers and their accounts. Their secrets are encrypted before they reach this module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, select

from corral.control.records import DirectoryRecord, IdentityRecord, ProviderKind, ProviderRecord
from corral.stores.database import row_codec
from corral.stores.database.statements import replace_rows
from corral.stores.schema.tables import identity_rows, provider_rows


class SqlProviderTable:
    """Implements `corral.control.ports.ProviderTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[ProviderRecord]:
        rows = self._connection.execute(select(provider_rows).order_by(provider_rows.c.id))
        return [_provider_of(row) for row in rows]

    def get(self, provider_id: str) -> ProviderRecord | None:
        row = self._connection.execute(select(provider_rows).where(provider_rows.c.id == provider_id)).first()
        return None if row is None else _provider_of(row)

    def save(self, provider: ProviderRecord) -> None:
        """Raises StoreConflict when there is no such group."""
        row = {
            "id": provider.id,
            "kind": provider.kind.value,
            "title": provider.title,
            "issuer": provider.issuer,
            "client_id": provider.client_id,
            "client_secret": provider.client_secret,
            "enabled": provider.enabled,
            "allow": row_codec.encode_names(provider.allow),
            "group_name": provider.group,
            "groups_claim": provider.groups_claim,
            "group_rules": row_codec.encode_names(provider.group_rules),
            "organisation": provider.organisation,
            "api_token": provider.api_token,
            "directory": "" if provider.directory is None else row_codec.to_json(asdict(provider.directory)),
            "created_at": provider.created_at,
        }
        replace_rows(self._connection, provider_rows, [row])

    def delete(self, provider_id: str) -> None:
        # Its identities go with it, by their foreign key.
        self._connection.execute(delete(provider_rows).where(provider_rows.c.id == provider_id))

    def identities(self, provider_id: str) -> list[IdentityRecord]:
        rows = self._connection.execute(
            select(identity_rows)
            .where(identity_rows.c.provider == provider_id)
            .order_by(identity_rows.c.login, identity_rows.c.subject)
        )
        return [_identity_of(row) for row in rows]

    def identity(self, provider_id: str, subject: str) -> IdentityRecord | None:
        row = self._connection.execute(
            select(identity_rows).where(identity_rows.c.provider == provider_id, identity_rows.c.subject == subject)
        ).first()
        return None if row is None else _identity_of(row)

    def save_identities(self, identities: Sequence[IdentityRecord]) -> None:
        """Raises StoreConflict when the provider or a user is not there."""
        rows = [
            {
                "provider": identity.provider,
                "subject": identity.subject,
                "login": identity.login,
                "name": identity.name,
                "email": identity.email,
                "seen_at": identity.seen_at,
                "user_name": identity.user,
                "gone_at": identity.gone_at,
            }
            for identity in identities
        ]
        replace_rows(self._connection, identity_rows, rows)


def _provider_of(row: Any) -> ProviderRecord:
    return ProviderRecord(
        id=row.id,
        kind=ProviderKind(row.kind),
        title=row.title,
        issuer=row.issuer,
        client_id=row.client_id,
        client_secret=row.client_secret,
        enabled=row.enabled,
        allow=row_codec.decode_names(str, row.allow),
        group=row.group_name,
        groups_claim=row.groups_claim,
        group_rules=row_codec.decode_names(str, row.group_rules),
        organisation=row.organisation,
        api_token=row.api_token,
        directory=_directory_of(row.directory),
        created_at=row.created_at,
    )


def _identity_of(row: Any) -> IdentityRecord:
    return IdentityRecord(
        provider=row.provider,
        subject=row.subject,
        login=row.login,
        name=row.name,
        email=row.email,
        seen_at=row.seen_at,
        user=row.user_name,
        gone_at=row.gone_at,
    )


def _directory_of(text: str) -> DirectoryRecord | None:
    if not text:
        return None
    values = row_codec.from_json(text)
    return DirectoryRecord(**{**values, "more_addresses": tuple(values["more_addresses"])})
