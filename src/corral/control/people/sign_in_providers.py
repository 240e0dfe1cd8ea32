"""Sign-in providers: which services may authenticate users, and which of their users may sign in.

Decides whether a provider is valid, which identities may sign in, and their user names. The server sends the requests
to providers; their secrets arrive here encrypted. Local sign-in is not a provider: it cannot be switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from corral.control.errors import Invalid, NotFound, Taken, WrongState
from corral.control.live.unit_of_work import PLATFORM, SYSTEM, Caller, Work
from corral.control.people import ldap_directories, user_accounts
from corral.control.people.operators import is_acting_operator, reachable_operators, require_operator
from corral.control.people.sign_in_rules import apply_decision, decision_of
from corral.control.ports import Transaction
from corral.control.records import (
    LOCAL_PROVIDER,
    CredentialKind,
    IdentityRecord,
    JobFilter,
    ProviderKind,
    ProviderRecord,
    Role,
    UserRecord,
)
from corral.core.counts import counted
from corral.core.names import USER_NAME
from corral.core.people.group_rules import read_rule

PROVIDER_ID = re.compile(r"[a-z][a-z0-9-]{0,31}")
#: Words that mean something else in the same place of an address.
RESERVED_IDS = frozenset({LOCAL_PROVIDER, "all", "login", "logout", "providers"})
DEFAULT_ISSUERS = {ProviderKind.GITHUB: "https://github.com", ProviderKind.GITLAB: "https://gitlab.com"}
EVERYBODY = "*"
MAX_ALLOWED = 1000
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME_LENGTH = 32
_CONTROL_OR_BLANK = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, kw_only=True, slots=True)
class SignInOutcome:
    """The result of a sign-in through a provider; without a user, the person has to ask an operator."""

    identity: IdentityRecord
    user: UserRecord | None = None
    is_new: bool = False
    #: known and on-boarded, but switched off
    is_disabled: bool = False


# ------------------------------------------------------------------------------------------------ providers


def create_provider(work: Work, caller: Caller, provider: ProviderRecord) -> ProviderRecord:
    """A new provider, switched off unless it says otherwise."""
    require_operator(caller, "manage sign-in providers")
    if not PROVIDER_ID.fullmatch(provider.id) or provider.id in RESERVED_IDS:
        reserved = ", ".join(sorted(RESERVED_IDS))
        raise Invalid(
            f"the provider id {provider.id!r} is not allowed: up to 32 small letters, digits and -, not {reserved}",
            field="id",
        )
    if work.tx.providers.get(provider.id) is not None:
        raise Taken(f"there is a provider {provider.id!r} already", field="id", name=provider.id)
    made = _checked(work.tx, replace(provider, created_at=work.now))
    work.tx.providers.save(made)
    work.record(caller, "provider.created", made.id, detail=_detail(made))
    return made


def edit_provider(work: Work, caller: Caller, provider_id: str, changes: Mapping[str, Any]) -> ProviderRecord:
    """Change some fields; secrets that are not among the changes stay as they are."""
    require_operator(caller, "manage sign-in providers")
    before = existing(work.tx, provider_id)
    after = _checked(work.tx, replace(before, **ldap_directories.changed_directory(before, changes)))
    if after.kind is ProviderKind.LDAP:
        ldap_directories.check_new_way(before, after, changes)
    elif after.issuer != before.issuer:
        _check_new_issuer(work.tx, before, changes)
    if before.enabled and not after.enabled:
        _protect_last_operator(work.tx, before, "disable")
    work.tx.providers.save(after)
    detail = {**_detail(after), "changed": sorted(changes)}
    work.record(caller, _edit_action(before, after, changes), provider_id, detail=detail)
    return after


def delete_provider(work: Work, caller: Caller, provider_id: str) -> list[str]:
    """Deletes a provider and its identities; returns the names of its users. They keep their accounts and jobs, but are
    signed out and cannot sign in until an operator sets a password.
    """
    require_operator(caller, "manage sign-in providers")
    provider = existing(work.tx, provider_id)
    _protect_last_operator(work.tx, provider, "delete")
    users = [user for user in work.tx.people.users() if user.provider == provider_id]
    for user in users:
        # The next provider with this id must not be taken for the deleted one.
        work.tx.people.save_user(replace(user, provider=LOCAL_PROVIDER, subject=""))
        for kind in CredentialKind:
            work.tx.credentials.delete([item.id for item in work.tx.credentials.of_user(user.name, kind)])
    work.tx.providers.delete(provider_id)
    names = [user.name for user in users]
    work.record(caller, "provider.deleted", provider_id, detail={"kind": provider.kind, "users": names[:100]})
    return names


def renew_secrets(work: Work, renewed: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    """The same secrets under a newer key: by provider and field, as they were and as they are now."""
    for (provider_id, field), (before, after) in renewed.items():
        provider = work.tx.providers.get(provider_id)
        # An operator may have replaced the secret meanwhile.
        if provider is not None and getattr(provider, field) == before:
            change: dict[str, Any] = {field: after}
            work.tx.providers.save(replace(provider, **change))
    work.record(SYSTEM, "provider.secrets-renewed", PLATFORM, detail={"secrets": len(renewed)})


def existing(tx: Transaction, provider_id: str) -> ProviderRecord:
    provider = tx.providers.get(provider_id)
    if provider is None:
        raise NotFound(f"there is no sign-in provider {provider_id!r}", field="provider")
    return provider


def _checked(tx: Transaction, provider: ProviderRecord) -> ProviderRecord:
    issuer = provider.issuer or DEFAULT_ISSUERS.get(provider.kind, "")
    if provider.kind is not ProviderKind.OIDC:
        # Of an OIDC issuer every letter counts; these two are only the beginning of addresses.
        issuer = issuer.rstrip("/")
    claim = provider.groups_claim or ("memberOf" if provider.kind is ProviderKind.LDAP else "groups")
    provider = replace(provider, issuer=issuer, title=provider.title or provider.id, groups_claim=claim)
    provider = ldap_directories.checked_directory(provider)
    if provider.kind is not ProviderKind.LDAP:
        _check_client(provider)
    if len(provider.allow) > MAX_ALLOWED:
        raise Invalid(f"at most {MAX_ALLOWED} entries are allowed", field="allow", limit=MAX_ALLOWED)
    for entry in provider.allow:
        if not entry or _CONTROL_OR_BLANK.search(entry) or entry == "@":
            raise Invalid(
                f"{entry!r} is not a login, an e-mail address, an @domain or {EVERYBODY}", field="allow", entry=entry
            )
    if provider.group is not None:
        _check_group(tx, provider.group)
    _check_rules(tx, provider)
    return replace(
        provider,
        allow=tuple(dict.fromkeys(provider.allow)),
        group_rules=tuple(dict.fromkeys(rule.strip() for rule in provider.group_rules)),
    )


def _check_client(provider: ProviderRecord) -> None:
    _check_issuer(provider.issuer)
    if not provider.client_id or _CONTROL_OR_BLANK.search(provider.client_id):
        raise Invalid("the client id must not be empty or contain blanks", field="client_id")
    if provider.organisation and provider.kind is ProviderKind.OIDC:
        raise Invalid("an OIDC provider has no members to list: leave organisation empty", field="organisation")
    if provider.api_token and provider.kind is ProviderKind.OIDC:
        raise Invalid("an OIDC provider has no API to list people: leave api_token empty", field="api_token")


def _check_rules(tx: Transaction, provider: ProviderRecord) -> None:
    if provider.group_rules and provider.kind is ProviderKind.GITHUB:
        raise Invalid("GitHub names no groups at sign-in: leave group_rules empty", field="group_rules")
    if _CONTROL_OR_BLANK.search(provider.groups_claim):
        raise Invalid("the claim must not contain blanks", field="groups_claim")
    if len(provider.group_rules) > MAX_ALLOWED:
        raise Invalid(f"at most {MAX_ALLOWED} rules are allowed", field="group_rules", limit=MAX_ALLOWED)
    for text in provider.group_rules:
        try:
            rule = read_rule(text)
        except ValueError as error:
            raise Invalid(f"{text!r} is not a rule: {error}", field="group_rules", entry=text) from None
        if rule.group is not None:
            _check_group(tx, rule.group, field="group_rules")


def _check_issuer(issuer: str) -> None:
    try:
        parts = urlsplit(issuer)
        host = parts.hostname
        # The port is read only when it is asked for, and may be nonsense.
        is_address = parts.scheme in ("http", "https") and bool(host) and (parts.port or 1) > 0
    except ValueError:
        is_address, host = False, None
    if not is_address or parts.query or parts.fragment or parts.username or _CONTROL_OR_BLANK.search(issuer):
        raise Invalid(f"{issuer!r} is not an address such as https://sso.example.org/realms/lab", field="issuer")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise Invalid(f"{issuer} is not encrypted: a provider on another machine needs https", field="issuer")


def _check_new_issuer(tx: Transaction, before: ProviderRecord, changes: Mapping[str, Any]) -> None:
    users = [user.name for user in tx.people.users() if user.provider == before.id]
    if users:
        # The ids of the new provider would be taken for those of the old one: another person could sign in as ann.
        raise WrongState(
            f"{counted(len(users), 'user comes', 'users come')} from {before.issuer} ({', '.join(users[:5])}): "
            "another issuer could pass others off as them. Create a second provider instead",
            field="issuer",
            users=users[:20],
        )
    for secret in ("client_secret", "api_token"):
        if getattr(before, secret) and secret not in changes:
            raise Invalid(f"give {secret} again: the one that is kept belongs to {before.issuer}", field=secret)


def _protect_last_operator(tx: Transaction, provider: ProviderRecord, verb: str) -> None:
    if reachable_operators(tx, without_provider=provider.id):
        return
    stranded = [user.name for user in reachable_operators(tx)]
    if not stranded:
        return  # no operator could sign in before either
    raise WrongState(
        f"cannot {verb} {provider.id}: every operator signs in through it ({', '.join(stranded[:5])}). "
        f"Give one of them a password first: corral user password {stranded[0]}",
        field="provider",
        operators=stranded[:20],
    )


def _edit_action(before: ProviderRecord, after: ProviderRecord, changes: Mapping[str, Any]) -> str:
    if set(changes) == {"enabled"} and before.enabled != after.enabled:
        return "provider.enabled" if after.enabled else "provider.disabled"
    return "provider.edited"


def _detail(provider: ProviderRecord) -> dict[str, Any]:
    """The details of a provider for the audit log, without secrets, even encrypted ones."""
    return ldap_directories.detail_of(provider) | {
        "kind": provider.kind,
        "issuer": provider.issuer,
        "client_id": provider.client_id,
        "enabled": provider.enabled,
        "allow": list(provider.allow[:20]),
        "group_rules": list(provider.group_rules[:20]),
    }


# ------------------------------------------------------------------------------------------------ people


def sign_in(work: Work, source: str, seen: IdentityRecord, member_of: Collection[str] = ()) -> SignInOutcome:
    """A person has signed in through an enabled provider: a known user, a new user on the allow-list or of a group with
    a rule, or a person without an account. `member_of` are the groups that the provider names; the rules decide about
    group and role at every sign-in. The identity is stored in each case."""
    provider = existing(work.tx, seen.provider)
    if not provider.enabled:
        raise WrongState(f"signing in with {provider.title} is switched off", field="provider")
    user = _user_of(work.tx, seen)
    identity = replace(seen, seen_at=work.now, user=user.name if user is not None else None)
    platform = replace(SYSTEM, source=source)
    decision = decision_of(provider, member_of)
    if user is not None:
        user = ldap_directories.enable_returned(work, platform, user)
        work.tx.providers.save_identities([identity])
        if not user.disabled:
            user = apply_decision(work, platform, user, decision)
        return SignInOutcome(identity=identity, user=None if user.disabled else user, is_disabled=user.disabled)
    # The first user, who sets up the installation, is the first operator.
    if decision.is_member or is_allowed(provider, identity) or not work.tx.people.users():
        role = Role.OPERATOR if decision.is_operator else Role.SCIENTIST
        made = _on_board(work, platform, provider, identity, decision.group or provider.group, role)
        return SignInOutcome(identity=replace(identity, user=made.name), user=made, is_new=True)
    work.tx.providers.save_identities([identity])
    caller = Caller(name=PLATFORM, source=source)
    work.record(caller, "identity.refused", identity.login, detail={"provider": provider.id, "login": identity.login})
    return SignInOutcome(identity=identity)


def on_board(
    work: Work,
    caller: Caller,
    provider_id: str,
    subjects: Sequence[str],
    group: str | None,
    operators: Sequence[str] = (),
) -> list[UserRecord]:
    """Make users of people whom the provider knows, all or none; those among `operators` get that role."""
    require_operator(caller, "manage sign-in providers")
    provider = existing(work.tx, provider_id)
    if not subjects:
        raise Invalid("say whom: give at least one subject", field="subjects")
    known = {identity.subject: identity for identity in work.tx.providers.identities(provider_id)}
    wanted = list(dict.fromkeys(subjects))
    unknown = [subject for subject in wanted if subject not in known]
    if unknown:
        raise NotFound(
            f"{provider_id} does not know {', '.join(unknown[:5])}: refresh its people, or let them try to sign in",
            field="subjects",
            subjects=unknown[:20],
        )
    if strange := [subject for subject in operators if subject not in wanted]:
        raise Invalid(f"{', '.join(strange[:5])} is not among the subjects", field="operators", subjects=strange[:20])
    present = [(known[subject].login, user.name) for subject in wanted if (user := _user_of(work.tx, known[subject]))]
    if present:
        text = ", ".join(f"{login} is user {name}" for login, name in present[:5])
        raise Taken(f"already on-boarded: {text}", field="subjects", logins=[login for login, _ in present[:20]])
    if group is not None:
        _check_group(work.tx, group)
    return [
        _on_board(
            work, caller, provider, known[subject], group, Role.OPERATOR if subject in operators else Role.SCIENTIST
        )
        for subject in wanted
    ]


def has_operator(tx: Transaction, provider_id: str) -> bool:
    """Whether an operator has signed in with the provider. Until then, the first person who is on-boarded is offered
    the role: an installation that has moved to a provider would otherwise keep its one local operator only."""
    return any(
        user.provider == provider_id and is_acting_operator(user) and user.last_seen_at is not None
        for user in tx.people.users()
    )


def remember(work: Work, caller: Caller, provider_id: str, found: Sequence[IdentityRecord]) -> int:
    """People whom the provider lists; who was seen or on-boarded stays so. How many are new."""
    require_operator(caller, "manage sign-in providers")
    existing(work.tx, provider_id)
    known = {identity.subject: identity for identity in work.tx.providers.identities(provider_id)}
    merged = []
    for item in found:
        before = known.get(item.subject)
        if before is not None:
            # A list has fewer values than a sign-in: values that it lacks are kept.
            item = replace(
                item,
                name=item.name or before.name,
                email=item.email or before.email,
                seen_at=before.seen_at,
                user=before.user,
                gone_at=before.gone_at,
            )
        merged.append(item)
    work.tx.providers.save_identities(merged)
    new = sum(item.subject not in known for item in found)
    work.record(caller, "provider.refreshed", provider_id, detail={"people": len(found), "new": new})
    return new


def known_people(tx: Transaction, provider_id: str) -> list[IdentityRecord]:
    """Everyone the provider knows, with the users that they are now."""
    existing(tx, provider_id)
    names = {user.subject: user.name for user in tx.people.users() if user.provider == provider_id}
    return [replace(item, user=names.get(item.subject)) for item in tx.providers.identities(provider_id)]


def is_allowed(provider: ProviderRecord, identity: IdentityRecord) -> bool:
    """Whether the allow-list names them. An e-mail address counts only when the provider has verified it, and only such
    addresses are in an identity; a login that looks like an address is a text that its owner may have chosen. In a
    directory it is the login that is given out, and the address that people may often change themselves."""
    login, email = identity.login.casefold(), identity.email.casefold()
    if provider.kind is ProviderKind.LDAP:
        return any(entry.casefold() in (EVERYBODY, login) for entry in provider.allow)
    names = {EVERYBODY}
    if "@" not in login:
        names.add(login)
    if "@" in email:
        names |= {email, "@" + email.rpartition("@")[2]}
    return any(entry.casefold() in names for entry in provider.allow)


def name_for(login: str, is_free: Callable[[str], bool]) -> str:
    """A user name made from a login: ann.lee@example.org becomes ann.lee, or ann.lee-2 if that is taken."""
    base = re.sub(r"[^a-z0-9_.-]+", "-", login.casefold().partition("@")[0])
    base = re.sub(r"^[^a-z_]+", "", base).rstrip("-.") or "user"
    for number in range(1, 1000):
        suffix = "" if number == 1 else f"-{number}"
        name = base[: _NAME_LENGTH - len(suffix)] + suffix
        if USER_NAME.fullmatch(name) and name != PLATFORM and is_free(name):
            return name
    raise Taken(f"no user name is left for the login {login!r}: create the user by hand", field="subjects", login=login)


def _on_board(
    work: Work,
    caller: Caller,
    provider: ProviderRecord,
    identity: IdentityRecord,
    group: str | None,
    role: Role = Role.SCIENTIST,
) -> UserRecord:
    def is_free(name: str) -> bool:
        if work.tx.people.user(name) is not None:
            return False
        return not work.tx.jobs.page(JobFilter(user=name), sort="id", cursor=None, limit=1).items

    name = name_for(identity.login, is_free)
    user = user_accounts.create_user(
        work,
        caller,
        name,
        role=role,
        group=group,
        display_name=identity.name[: user_accounts.MAX_DISPLAY_NAME],
        # Providers are less strict about addresses; one that could not be typed in is left out.
        email=identity.email if user_accounts.EMAIL.fullmatch(identity.email) else "",
        provider=provider.id,
        subject=identity.subject,
    )
    work.tx.providers.save_identities([replace(identity, user=name)])
    detail = {"provider": provider.id, "login": identity.login, "group": group, "role": user.role}
    work.record(caller, "user.on-boarded", name, owner=name, detail=detail)
    return user


def _user_of(tx: Transaction, identity: IdentityRecord) -> UserRecord | None:
    """Finds the user by the identity in the user's own record: a name in an identity may meanwhile belong to another
    user.
    """
    matching = [user for user in tx.people.users() if _is_same(user, identity)]
    return matching[0] if matching else None


def _is_same(user: UserRecord, identity: IdentityRecord) -> bool:
    return user.provider == identity.provider and user.subject == identity.subject


def _check_group(tx: Transaction, group: str, field: str = "group") -> None:
    names = [record.name for record in tx.people.groups()]
    if group not in names:
        raise Invalid(f"there is no group {group!r}; there are {', '.join(names[:10])}", field=field)
