"""Tables of people and how they sign in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from corral.control.records import (
    CredentialKind,
    CredentialRecord,
    GroupRecord,
    IdentityRecord,
    PermissionGroupRecord,
    PersonalChannelRecord,
    ProviderRecord,
    QuotaRecord,
    SecretRecord,
    SshKeyRecord,
    UserRecord,
    VolumeQuotaRecord,
)
from corral.core.people.budgets import Account


class PeopleTable(Protocol):
    def users(self) -> list[UserRecord]: ...

    def user(self, name: str) -> UserRecord | None: ...

    def add_user(self, user: UserRecord) -> None:
        """Raises NameTaken."""

    def save_user(self, user: UserRecord) -> None: ...

    def saw_user(self, name: str, at: float) -> None:
        """Stores that the user has signed in. An unknown user is ignored."""

    def delete_user(self, name: str) -> None:
        """Deletes the user with credentials and quotas."""

    def quotas(self) -> list[QuotaRecord]: ...

    def save_quota(self, quota: QuotaRecord) -> None:
        """Insert or replace; a quota without any limit removes the row."""

    def volume_quotas(self) -> list[VolumeQuotaRecord]: ...

    def save_volume_quota(self, quota: VolumeQuotaRecord) -> None:
        """Insert or replace; no limit removes the row."""

    def groups(self) -> list[GroupRecord]:
        """Sorted by name; `default` is always there."""

    def save_group(self, group: GroupRecord) -> None:
        """Insert or replace by name."""

    def delete_group(self, name: str) -> None: ...

    def permission_groups(self) -> list[PermissionGroupRecord]:
        """Sorted by name; `everyone` is always there, with every function on a fresh install but see-others-jobs."""

    def save_permission_group(self, group: PermissionGroupRecord) -> None:
        """Insert or replace by name."""

    def delete_permission_group(self, name: str) -> None: ...


class SshKeyTable(Protocol):
    def add(self, key: SshKeyRecord) -> None: ...

    def of_user(self, user: str) -> list[SshKeyRecord]: ...

    def by_fingerprint(self, fingerprint: str) -> list[SshKeyRecord]: ...

    def delete(self, key_ids: Sequence[str]) -> None: ...


class SecretTable(Protocol):
    """Secrets of users and groups, encrypted."""

    def all(self) -> list[SecretRecord]:
        """Sorted by name and owner."""

    def save(self, secret: SecretRecord) -> None:
        """Insert or replace by owner and name."""

    def delete(self, owner: Account, name: str) -> None: ...


class PersonalChannelTable(Protocol):
    """Where items of users' inboxes are sent."""

    def all(self) -> list[PersonalChannelRecord]:
        """Sorted by user and name."""

    def of_user(self, user: str) -> list[PersonalChannelRecord]:
        """Sorted by name."""

    def save(self, channel: PersonalChannelRecord) -> None:
        """Insert or replace by user and name."""

    def delete(self, user: str, name: str) -> None: ...


class ProviderTable(Protocol):
    """Sign-in providers and the people whom they know."""

    def all(self) -> list[ProviderRecord]:
        """Sorted by id."""

    def get(self, provider_id: str) -> ProviderRecord | None: ...

    def save(self, provider: ProviderRecord) -> None:
        """Insert or replace by id."""

    def delete(self, provider_id: str) -> None:
        """Deletes the provider with its identities."""

    def identities(self, provider_id: str) -> list[IdentityRecord]:
        """Sorted by login."""

    def identity(self, provider_id: str, subject: str) -> IdentityRecord | None: ...

    def save_identities(self, identities: Sequence[IdentityRecord]) -> None:
        """Insert or replace by provider and subject."""


class CredentialTable(Protocol):
    def add(self, credential: CredentialRecord) -> None: ...

    def by_hash(self, secret_hash: str) -> CredentialRecord | None: ...

    def of_user(self, user: str, kind: CredentialKind) -> list[CredentialRecord]: ...

    def touch(self, credential_id: str, at: float) -> None:
        """Stores when the credential was last used and its user last seen."""

    def delete(self, credential_ids: Sequence[str]) -> None: ...
