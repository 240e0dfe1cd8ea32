"""Credentials: tokens, browser sessions and SSH keys. Only hashes of secrets are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from corral.control.records import CredentialKind, CredentialRecord, Scope, SshKeyRecord
from corral.stores.database import row_codec
from corral.stores.schema.tables import credential_rows, ssh_key_rows, user_rows


class SqlCredentialTable:
    """Implements `corral.control.ports.CredentialTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, credential: CredentialRecord) -> None:
        self._connection.execute(
            insert(credential_rows).values(
                id=credential.id,
                kind=credential.kind.value,
                user_name=credential.user,
                name=credential.name,
                secret_hash=credential.secret_hash,
                scopes=row_codec.encode_names(credential.scopes),
                csrf=credential.csrf,
                created_at=credential.created_at,
                expires_at=credential.expires_at,
                last_used_at=credential.last_used_at,
            )
        )

    def by_hash(self, secret_hash: str) -> CredentialRecord | None:
        row = self._connection.execute(
            select(credential_rows).where(credential_rows.c.secret_hash == secret_hash)
        ).first()
        return None if row is None else _credential_of(row)

    def of_user(self, user: str, kind: CredentialKind) -> list[CredentialRecord]:
        """Oldest first."""
        rows = self._connection.execute(
            select(credential_rows)
            .where(credential_rows.c.user_name == user, credential_rows.c.kind == kind.value)
            .order_by(credential_rows.c.created_at, credential_rows.c.id)
        )
        return [_credential_of(row) for row in rows]

    def touch(self, credential_id: str, at: float) -> None:
        used = credential_rows.c.id == credential_id
        self._connection.execute(update(credential_rows).where(used).values(last_used_at=at))
        owner = select(credential_rows.c.user_name).where(used).scalar_subquery()
        self._connection.execute(update(user_rows).where(user_rows.c.name == owner).values(last_seen_at=at))

    def delete(self, credential_ids: Sequence[str]) -> None:
        if credential_ids:
            self._connection.execute(delete(credential_rows).where(credential_rows.c.id.in_(credential_ids)))


class SqlSshKeyTable:
    """Implements `corral.control.ports.SshKeyTable`. Keys come oldest first."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, key: SshKeyRecord) -> None:
        """Raises StoreConflict when the user is not there or has this key already."""
        self._connection.execute(
            insert(ssh_key_rows).values(
                id=key.id,
                user_name=key.user,
                name=key.name,
                public_key=key.public_key,
                fingerprint=key.fingerprint,
                created_at=key.created_at,
            )
        )

    def of_user(self, user: str) -> list[SshKeyRecord]:
        return self._keys(ssh_key_rows.c.user_name == user)

    def by_fingerprint(self, fingerprint: str) -> list[SshKeyRecord]:
        return self._keys(ssh_key_rows.c.fingerprint == fingerprint)

    def delete(self, key_ids: Sequence[str]) -> None:
        if key_ids:
            self._connection.execute(delete(ssh_key_rows).where(ssh_key_rows.c.id.in_(key_ids)))

    def _keys(self, condition: ColumnElement[bool]) -> list[SshKeyRecord]:
        rows = self._connection.execute(
            select(ssh_key_rows).where(condition).order_by(ssh_key_rows.c.created_at, ssh_key_rows.c.id)
        )
        return [
            SshKeyRecord(
                id=row.id,
                user=row.user_name,
                name=row.name,
                public_key=row.public_key,
                fingerprint=row.fingerprint,
                created_at=row.created_at,
            )
            for row in rows
        ]


def _credential_of(row: Any) -> CredentialRecord:
    return CredentialRecord(
        id=row.id,
        kind=CredentialKind(row.kind),
        user=row.user_name,
        name=row.name,
        secret_hash=row.secret_hash,
        scopes=row_codec.decode_names(Scope, row.scopes),
        csrf=row.csrf,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )
