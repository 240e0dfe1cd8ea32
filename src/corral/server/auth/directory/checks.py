"""The test of a directory's settings: all that can be seen without the password of a person."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from corral.control.people.ldap_directories import can_refresh
from corral.control.people.sign_in_providers import EVERYBODY
from corral.core.people.directory_names import group_key, steps_of
from corral.core.people.group_rules import read_rule
from corral.server.auth.directory.accounts import subject_of
from corral.server.auth.directory.connection import DirectoryConnection, Entry
from corral.server.auth.directory.directory import Directory
from corral.server.auth.directory.memberships import parsed
from corral.server.auth.kinds.provider_kind import Check
from corral.server.auth.outside import ProviderFailed

_MOST_RULES = 20


def checks_of(directory: Directory) -> list[Check]:
    provider, settings = directory.provider, directory.settings
    found = [_encryption_check(directory)]
    if not can_refresh(provider):
        hint = "Give a service account, so that people who have left are signed out before their sessions end."
        found.append(Check(name="refresh", state="warn", detail="people are looked up at sign-in only", hint=hint))
        return found
    try:
        with directory.bound() as connection:
            account = provider.client_id or "an anonymous search"
            found.append(Check(name="connection", state="ok", detail=f"{provider.issuer} answers to {account}"))
            entries = directory.first_entries(connection)
            found.append(_people_check(directory, entries))
            if settings.group_base:
                found.append(_group_base_check(directory, connection))
            found += _rule_checks(directory, connection)
    except ProviderFailed as error:
        found.append(Check(name="connection", state="fail", detail=str(error), hint=error.hint))
    if not provider.allow and not provider.group_rules:
        hint = f"corral provider edit {provider.id} --allow LOGIN, or --group-rule THEIRS=GROUP"
        found.append(Check(name="allow", state="warn", detail="only on-boarded people may sign in", hint=hint))
    elif EVERYBODY in provider.allow:
        detail = "every person whom the directory shows may sign in"
        found.append(Check(name="allow", state="ok", detail=detail))
    return found


def _encryption_check(directory: Directory) -> Check:
    addresses = (directory.provider.issuer, *directory.settings.more_addresses)
    plain = [address for address in addresses if urlsplit(address).scheme == "ldap"]
    if not plain or directory.settings.starttls:
        detail = "StartTLS" if plain else "TLS"
        return Check(name="encryption", state="ok", detail=detail)
    hint = "Use ldaps:// or StartTLS."
    return Check(name="encryption", state="warn", detail=f"passwords go to {plain[0]} unencrypted", hint=hint)


def _people_check(directory: Directory, entries: Sequence[Entry]) -> Check:
    settings = directory.settings
    if not entries:
        hint = "Check base and user_filter, and whether the service account may read there."
        detail = f"no entry below {settings.base} matches {settings.user_filter}"
        return Check(name="people", state="fail", detail=detail, hint=hint)
    entry = entries[0]
    if not subject_of(settings, entry):
        hint = "entryUUID (OpenLDAP), ipaUniqueID (FreeIPA) or objectGUID (Active Directory)"
        detail = f"{entry.name} has no {settings.id_attribute} that can be used as an id"
        return Check(name="people", state="fail", detail=detail, hint=hint)
    if not entry.text(settings.login_attribute):
        hint = "uid (OpenLDAP, FreeIPA) or sAMAccountName (Active Directory)"
        detail = f"{entry.name} has no {settings.login_attribute}"
        return Check(name="people", state="fail", detail=detail, hint=hint)
    return Check(name="people", state="ok", detail=f"people are found, as {entry.name}")


def _group_base_check(directory: Directory, connection: DirectoryConnection) -> Check:
    settings = directory.settings
    if connection.search(settings.group_base, parsed(settings.group_filter), ["1.1"], most=1):
        return Check(name="groups", state="ok", detail=f"groups are found below {settings.group_base}")
    detail = f"no group below {settings.group_base} matches {settings.group_filter}"
    return Check(name="groups", state="warn", detail=detail, hint="Check group_base and group_filter.")


def _rule_checks(directory: Directory, connection: DirectoryConnection) -> list[Check]:
    """Warns of rules for groups that the directory does not have."""
    settings, missing = directory.settings, []
    for rule in [read_rule(text) for text in directory.provider.group_rules][:_MOST_RULES]:
        name = rule.member_of
        if "=" not in name:
            if not settings.group_base:
                missing.append(f"{name} (short names need group_base)")
                continue
            name = _below(connection, settings.group_base, name)
        if not name or not _is_there(connection, name):
            missing.append(rule.member_of)
    if not missing:
        return []
    detail = f"the directory does not show the groups of these rules: {', '.join(missing[:5])}"
    return [Check(name="rules", state="warn", detail=detail, hint="Give the whole name of each group.")]


def _below(connection: DirectoryConnection, base: str, name: str) -> str:
    """The whole name of the group with this short name directly below the base; "" if there is none."""
    from sansldap import FilterEquality

    found = connection.search(base, FilterEquality("cn", name.encode()), ["1.1"], most=_MOST_RULES)
    names = [entry.name for entry in found if steps_of(entry.name)[1:] == steps_of(base)]
    return next((entry for entry in names if group_key(entry)), "")


def _is_there(connection: DirectoryConnection, name: str) -> bool:
    from sansldap import FilterPresent

    try:
        return bool(connection.search(name, FilterPresent("objectClass"), ["1.1"], most=1, is_base_only=True))
    except ProviderFailed:
        return False
