"""Users, their groups, quotas and permissions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from corral.control.ports import NameTaken, StoreConflict
from corral.control.records import (
    EVERYONE,
    Function,
    GroupRecord,
    PermissionGroupRecord,
    QuotaRecord,
    Role,
    UserRecord,
    VolumeQuotaRecord,
)
from corral.core.model import JobKind
from corral.core.people.quota import Quota
from corral.core.storage.volumes import VolumeType
from corral.stores.database import row_codec
from corral.stores.database.rows import readable
from corral.stores.database.statements import RowStatement, insert_into, replace_rows, upsert
from corral.stores.schema.tables import group_rows, permission_group_rows, quota_rows, user_rows, volume_quota_rows

_SAVE_QUOTA = upsert(quota_rows)
_USER = RowStatement(lambda _: select(user_rows).where(user_rows.c.name == bindparam("user_name")), ["user_name"])


class SqlPeopleTable:
    """Implements `corral.control.ports.PeopleTable`. Users come sorted by name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def users(self) -> list[UserRecord]:
        rows = self._connection.execute(select(user_rows).order_by(user_rows.c.name))
        return readable(self._connection, "users", rows, _user_of)

    def user(self, name: str) -> UserRecord | None:
        # By the driver: each request that changes something looks its caller up.
        row = _USER.run(self._connection, row_codec.storable(name))
        return None if row is None else _user_of(row)

    def add_user(self, user: UserRecord) -> None:
        """A provider's subject is unique, too: it belongs to one user only."""
        statement = insert_into(self._connection.dialect.name, user_rows)
        statement = statement.values(_user_row(user)).on_conflict_do_nothing().returning(user_rows.c.name)
        if self._connection.execute(statement).first() is None:
            taken = self.user(user.name) is not None
            raise NameTaken("user", user.name) if taken else NameTaken(user.provider, user.subject)

    def save_user(self, user: UserRecord) -> None:
        """Raises StoreConflict when the user was deleted meanwhile."""
        changed = self._connection.execute(
            update(user_rows).where(user_rows.c.name == user.name).values(_user_row(user))
        )
        if changed.rowcount != 1:
            raise StoreConflict(f"there is no user {user.name}")

    def saw_user(self, name: str, at: float) -> None:
        self._connection.execute(update(user_rows).where(user_rows.c.name == name).values(last_seen_at=at))

    def delete_user(self, name: str) -> None:
        # Credentials, keys and quotas go with it and identities become free, by their foreign keys.
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

    def volume_quotas(self) -> list[VolumeQuotaRecord]:
        rows = self._connection.execute(
            select(volume_quota_rows).order_by(volume_quota_rows.c.user_name, volume_quota_rows.c.type)
        )
        return [
            VolumeQuotaRecord(user=row.user_name, type=VolumeType(row.type), max_bytes=row.max_bytes) for row in rows
        ]

    def save_volume_quota(self, quota: VolumeQuotaRecord) -> None:
        key = {"user_name": quota.user, "type": quota.type.value}
        if quota.max_bytes is None:
            self._connection.execute(delete(volume_quota_rows).filter_by(**key))
            return
        replace_rows(self._connection, volume_quota_rows, [{**key, "max_bytes": quota.max_bytes}])

    def groups(self) -> list[GroupRecord]:
        rows = self._connection.execute(select(group_rows).order_by(group_rows.c.name))
        return [
            GroupRecord(name=row.name, pool=row.pool, description=row.description, created_at=row.created_at)
            for row in rows
        ]

    def save_group(self, group: GroupRecord) -> None:
        """Raises StoreConflict when there is no such pool or another group has it."""
        row = {
            "name": group.name,
            "pool": group.pool,
            "description": group.description,
            "created_at": group.created_at,
        }
        replace_rows(self._connection, group_rows, [row])

    def delete_group(self, name: str) -> None:
        """Deletes a group; its users are in no group afterwards."""
        self._connection.execute(update(user_rows).where(user_rows.c.group_name == name).values(group_name=None))
        self._connection.execute(delete(group_rows).where(group_rows.c.name == name))

    def permission_groups(self) -> list[PermissionGroupRecord]:
        rows = self._connection.execute(select(permission_group_rows).order_by(permission_group_rows.c.name))
        return [
            PermissionGroupRecord(
                name=row.name,
                functions=row_codec.decode_names(Function, row.functions),
                description=row.description,
                created_at=row.created_at,
            )
            for row in rows
        ]

    def save_permission_group(self, group: PermissionGroupRecord) -> None:
        row = {
            "name": group.name,
            "functions": row_codec.encode_names(group.functions),
            "description": group.description,
            "created_at": group.created_at,
        }
        replace_rows(self._connection, permission_group_rows, [row])

    def delete_permission_group(self, name: str) -> None:
        """Deletes a permission group; its users get the default permissions."""
        self._connection.execute(
            update(user_rows).where(user_rows.c.permission_group == name).values(permission_group=EVERYONE)
        )
        self._connection.execute(delete(permission_group_rows).where(permission_group_rows.c.name == name))


def _user_row(user: UserRecord) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role.value,
        "password_hash": user.password_hash,
        "must_change_password": user.must_change_password,
        "disabled": user.disabled,
        "created_at": user.created_at,
        "group_name": user.group,
        "permission_group": user.permission_group,
        "display_name": user.display_name,
        "email": user.email,
        "provider": user.provider,
        "subject": user.subject,
        "last_seen_at": user.last_seen_at,
    }


def _user_of(row: Any) -> UserRecord:
    name, role, password_hash, must_change_password, disabled, created_at, group, *others = row
    permission_group, display_name, email, provider, subject, last_seen_at = others
    return UserRecord(
        name=name,
        role=Role(role),
        password_hash=password_hash,
        must_change_password=bool(must_change_password),
        disabled=bool(disabled),
        created_at=created_at,
        group=group,
        permission_group=permission_group,
        display_name=display_name,
        email=email,
        provider=provider,
        subject=subject,
        last_seen_at=last_seen_at,
    )
