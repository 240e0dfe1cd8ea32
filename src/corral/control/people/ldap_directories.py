"""Directories (LDAP) as sign-in providers: which settings are valid, and the people who have left a directory.

A directory is asked for passwords at sign-in and for its people from time to time. A person whom it no longer has, or
has disabled, loses sessions and tokens and is disabled, until the directory lets the person sign in again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from corral.control.errors import Invalid
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people import user_accounts
from corral.control.people.operators import reachable_operators
from corral.control.people.sign_in_rules import apply_decision, decision_of
from corral.control.ports import Transaction
from corral.control.records import CredentialKind, DirectoryRecord, ProviderKind, ProviderRecord, UserRecord
from corral.core.people.directory_names import PLACE, steps_of

LEAST_REFRESH_MINUTES = 5
MOST_REFRESH_MINUTES = 24 * 60
MAX_ADDRESSES = 10
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: Settings on which it depends where the password of the service account is sent.
_WAY = ("more_addresses", "starttls", "allow_plain", "ca_certificate")


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPerson:
    """A person whom the directory has."""

    subject: str
    member_of: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------ settings


def changed_directory(before: ProviderRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a provider, with the changed settings of its directory merged into those that stay."""
    given = changes.get("directory")
    if given is None:
        return dict(changes)
    if before.directory is None:
        raise Invalid("only a provider of the kind ldap has a directory", field="directory")
    return {**changes, "directory": replace(before.directory, **given)}


def checked_directory(provider: ProviderRecord) -> ProviderRecord:
    """The provider, if the settings of its directory are valid; those of another kind have none."""
    if provider.kind is not ProviderKind.LDAP:
        if provider.directory is not None:
            raise Invalid("only a provider of the kind ldap has a directory", field="directory")
        return provider
    directory = provider.directory or DirectoryRecord()
    for address in (provider.issuer, *directory.more_addresses):
        _check_address(address, directory)
    if len(directory.more_addresses) > MAX_ADDRESSES:
        raise Invalid(f"at most {MAX_ADDRESSES} more addresses are allowed", field="directory.more_addresses")
    if not directory.base:
        raise Invalid("say where people are searched, as dc=example,dc=org", field="directory.base")
    for field in ("base", "group_base"):
        _check_name(getattr(directory, field), f"directory.{field}")
    for field in ("login_attribute", "id_attribute", "name_attribute", "email_attribute", "member_attribute"):
        if not _ATTRIBUTE.fullmatch(getattr(directory, field)):
            raise Invalid(f"{getattr(directory, field)!r} is no name of an attribute", field=f"directory.{field}")
    if not _ATTRIBUTE.fullmatch(provider.groups_claim):
        raise Invalid(f"{provider.groups_claim!r} is no name of an attribute", field="groups_claim")
    _check_binding(provider, directory)
    if provider.organisation or provider.api_token:
        field = "organisation" if provider.organisation else "api_token"
        raise Invalid(f"a directory is searched by its service account: leave {field} empty", field=field)
    if not LEAST_REFRESH_MINUTES <= directory.refresh_minutes <= MOST_REFRESH_MINUTES:
        raise Invalid(
            f"people are looked up again every {LEAST_REFRESH_MINUTES} to {MOST_REFRESH_MINUTES} minutes",
            field="directory.refresh_minutes",
            least=LEAST_REFRESH_MINUTES,
            most=MOST_REFRESH_MINUTES,
        )
    return replace(provider, directory=directory)


def check_new_way(before: ProviderRecord, after: ProviderRecord, changes: Collection[str]) -> None:
    """The stored password is sent to no other address, and on no less protected way, than it was entered for."""
    is_same = before.issuer == after.issuer and all(
        getattr(before.directory, name, None) == getattr(after.directory, name, None) for name in _WAY
    )
    if not is_same and before.client_secret and "client_secret" not in changes:
        raise Invalid(
            f"give client_secret again: the one that is kept belongs to {before.issuer} as it was",
            field="client_secret",
        )


def detail_of(provider: ProviderRecord) -> dict[str, Any]:
    """The settings of a directory for the audit log; certificates are only said to be there."""
    if provider.directory is None:
        return {}
    settings = asdict(provider.directory)
    return {"directory": {**settings, "ca_certificate": bool(settings["ca_certificate"])}}


def can_refresh(provider: ProviderRecord) -> bool:
    """Whether people can be looked up without their password."""
    return provider.directory is not None and (bool(provider.client_id) or not provider.directory.bind_as)


def _check_address(address: str, directory: DirectoryRecord) -> None:
    try:
        parts = urlsplit(address)
        # The port is read only when it is asked for, and may be nonsense.
        is_address = parts.scheme in ("ldap", "ldaps") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise Invalid(f"{address!r} is not an address such as ldaps://ldap.example.org", field="issuer")
    is_plain = parts.scheme == "ldap" and not directory.starttls
    if is_plain and parts.hostname not in _LOOPBACK and not directory.allow_plain:
        raise Invalid(
            f"passwords would be sent to {address} unencrypted: use ldaps://, or StartTLS, or allow it explicitly",
            field="directory.starttls",
        )


def _check_name(name: str, field: str) -> None:
    try:
        if _CONTROL.search(name):
            raise ValueError
        steps_of(name)
    except ValueError:
        raise Invalid(f"{name!r} is no name in a directory such as ou=people,dc=example,dc=org", field=field) from None


def _check_binding(provider: ProviderRecord, directory: DirectoryRecord) -> None:
    if _CONTROL.search(provider.client_id):
        raise Invalid("the name of the service account has control characters", field="client_id")
    if provider.client_id and not provider.client_secret:
        raise Invalid(
            "the service account needs its password: most directories accept an empty one",
            field="client_id",
        )
    if provider.client_secret and not provider.client_id:
        raise Invalid("name the service account of this password", field="client_id")
    template = directory.bind_as
    if template and (template.count(PLACE) != 1 or _CONTROL.search(template)):
        raise Invalid(
            f"{template!r} must have {PLACE} once, in the place of the login: {PLACE}@example.org",
            field="directory.bind_as",
        )


# ------------------------------------------------------------------------------------------------ people


def subjects_of(tx: Transaction, provider_id: str) -> list[str]:
    """The ids in the directory of its users who are not disabled."""
    return [user.subject for user in tx.people.users() if user.provider == provider_id and not user.disabled]


def refresh(work: Work, asked_with: ProviderRecord, asked: Collection[str], found: Sequence[FoundPerson]) -> list[str]:
    """The directory was asked for users by their ids, and has found some: their groups are followed, and the others are
    disabled. The names of users whose rights have changed. Nothing changes if the settings are others meanwhile."""
    provider = work.tx.providers.get(asked_with.id)
    if provider is None or provider != asked_with:
        return []
    persons = {person.subject: person for person in found}
    changed = []
    for user in work.tx.people.users():
        if user.provider != provider.id or user.disabled or user.subject not in asked:
            continue
        person = persons.get(user.subject)
        if person is None:
            is_changed = _disable(work, user)
        else:
            is_changed = apply_decision(work, SYSTEM, user, decision_of(provider, person.member_of)) != user
        if is_changed:
            changed.append(user.name)
    return changed


def enable_returned(work: Work, caller: Caller, user: UserRecord) -> UserRecord:
    """Enables a user who was disabled because the directory did not have the person. A user whom an operator has
    disabled stays so."""
    known = work.tx.providers.identity(user.provider, user.subject)
    if not user.disabled or known is None or not known.gone_at:
        return user
    work.record(caller, "user.back-in-directory", user.name, owner=user.name, detail={"provider": user.provider})
    return user_accounts.edit_user(work, caller, user.name, disabled=False)


def _disable(work: Work, user: UserRecord) -> bool:
    """Ends the sessions and tokens of a person who has left; the last operator who can sign in is not disabled."""
    detail = {"provider": user.provider}
    if all(other.name == user.name for other in reachable_operators(work.tx)):
        credentials = [item for kind in CredentialKind for item in work.tx.credentials.of_user(user.name, kind)]
        work.tx.credentials.delete([item.id for item in credentials])
        if not credentials:
            return False
        detail["kept"] = "the last operator is signed out, but not disabled"
    else:
        user_accounts.edit_user(work, SYSTEM, user.name, disabled=True)
        known = work.tx.providers.identity(user.provider, user.subject)
        if known is not None:
            work.tx.providers.save_identities([replace(known, gone_at=work.now)])
    work.record(SYSTEM, "user.left-directory", user.name, owner=user.name, detail=detail)
    return True
