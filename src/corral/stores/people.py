"""Users, what they may hold, and how they prove who they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from corral.control.ports import NameTaken, StoreConflict
from corral.control.records import CredentialKind, CredentialRecord, QuotaRecord, Role, UserRecord
from corral.core.model import JobKind, Quota
from corral.stores.statements import insert_into, upsert
from corral.stores.tables import credential_rows, quota_rows, user_rows

_SAVE_QUOTA = upsert(quota_rows)


class SqlPeopleTable:
    """Implements `corral.control.ports.PeopleTable`. Users come sorted by name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def users(self) -> list[UserRecord]:
        rows = self._connection.execute(select(user_rows).order_by(user_rows.c.name))
        return [_user_of(row) for row in rows]

    def user(self, name: str) -> UserRecord | None:
        row = self._connection.execute(select(user_rows).where(user_rows.c.name == name)).first()
        return None if row is None else _user_of(row)

    def add_user(self, user: UserRecord) -> None:
        statement = insert_into(self._connection.dialect.name, user_rows)
        statement = statement.values(_user_row(user)).on_conflict_do_nothing().returning(user_rows.c.name)
        if self._connection.execute(statement).first() is None:
            raise NameTaken("user", user.name)

    def save_user(self, user: UserRecord) -> None:
        """Raises StoreConflict when the user was deleted meanwhile."""
        changed = self._connection.execute(
            update(user_rows).where(user_rows.c.name == user.name).values(_user_row(user))
        )
        if changed.rowcount != 1:
            raise StoreConflict(f"there is no user {user.name}")

    def delete_user(self, name: str) -> None:
        # Credentials and quotas go with it, by their foreign keys.
        self._connection.execute(delete(user_rows).where(user_rows.c.name == name))

    def quotas(self) -> list[QuotaRecord]:
        rows = self._connection.execute(select(quota_rows).order_by(quota_rows.c.user_name, quota_rows.c.kind))
        return [
            QuotaRecord(
                user=row.user_name,
                kind=JobKind(row.kind),
                quota=Quota(gpu_milli=row.gpu_milli, cpu_milli=row.cpu_milli, memory_bytes=row.memory_bytes),
            )
            for row in rows
        ]

    def save_quota(self, quota: QuotaRecord) -> None:
        limits = (quota.quota.gpu_milli, quota.quota.cpu_milli, quota.quota.memory_bytes)
        if all(limit is None for limit in limits):
            self._connection.execute(
                delete(quota_rows).where(quota_rows.c.user_name == quota.user, quota_rows.c.kind == quota.kind.value)
            )
            return
        _SAVE_QUOTA.run(self._connection, [(quota.user, quota.kind.value, *limits)])


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
        self._connection.execute(
            update(credential_rows).where(credential_rows.c.id == credential_id).values(last_used_at=at)
        )

    def delete(self, credential_ids: Sequence[str]) -> None:
        if credential_ids:
            self._connection.execute(delete(credential_rows).where(credential_rows.c.id.in_(credential_ids)))


def _user_row(user: UserRecord) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role.value,
        "password_hash": user.password_hash,
        "must_change_password": user.must_change_password,
        "disabled": user.disabled,
        "created_at": user.created_at,
    }


def _user_of(row: Any) -> UserRecord:
    return UserRecord(
        name=row.name,
        role=Role(row.role),
        password_hash=row.password_hash,
        must_change_password=row.must_change_password,
        disabled=row.disabled,
        created_at=row.created_at,
    )


def _credential_of(row: Any) -> CredentialRecord:
    return CredentialRecord(
        id=row.id,
        kind=CredentialKind(row.kind),
        user=row.user_name,
        name=row.name,
        secret_hash=row.secret_hash,
        csrf=row.csrf,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )
