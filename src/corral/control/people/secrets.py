"""Secrets of users and groups: values that jobs get as environment variables or files, and that no answer shows.

A user sets secrets of their own, an operator those of groups. A job names secrets; a name means the user's own secret,
or else that of the user's group, when the job is launched. Values arrive here encrypted and leave so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from corral.control.errors import Invalid, NotFound, OverLimit
from corral.control.live.unit_of_work import PLATFORM, SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import SecretRecord
from corral.core.jobs.secret_uses import parse_secrets
from corral.core.names import SECRET_NAME
from corral.core.people.budgets import Account, AccountKind

MAX_SECRETS = 100
#: A secret's owner and name.
Key = tuple[AccountKind, str, str]


def visible(tx: Transaction, caller: Caller) -> list[SecretRecord]:
    """The secrets that the caller's jobs can use; for operators also those of all groups."""
    group = _group_of(tx, caller.name)
    return [secret for secret in tx.secrets.all() if _is_seen(secret, caller, group)]


def put(work: Work, caller: Caller, name: str, value: str, *, group: str | None = None) -> SecretRecord:
    """Create a secret, or replace the value of the one of that name. The value is encrypted already."""
    owner = _owner_for(work.tx, caller, group)
    if SECRET_NAME.fullmatch(name) is None:
        raise Invalid(
            f"the name {name[:80]!r} is not allowed: up to 63 letters, digits, '.', '_' and '-'", field="name"
        )
    held = [secret.name for secret in work.tx.secrets.all() if secret.owner == owner]
    if name not in held and len(held) >= MAX_SECRETS:
        raise OverLimit(f"there are {len(held)} secrets already: remove one first", held=len(held), limit=MAX_SECRETS)
    secret = SecretRecord(owner=owner, name=name, value=value, set_by=caller.name, set_at=work.now)
    work.tx.secrets.save(secret)
    action = "secret.replaced" if name in held else "secret.created"
    work.record(caller, action, name, owner=_owner_name(owner), detail=_detail(owner))
    return secret


def delete(work: Work, caller: Caller, name: str, *, group: str | None = None) -> None:
    """Jobs that name it and are not launched yet will then fail, or get the group's secret of that name."""
    owner = _owner_for(work.tx, caller, group)
    if not any((secret.owner, secret.name) == (owner, name) for secret in work.tx.secrets.all()):
        raise NotFound(f"there is no secret {name[:80]!r}", field="secret")
    work.tx.secrets.delete(owner, name)
    work.record(caller, "secret.deleted", name, owner=_owner_name(owner), detail=_detail(owner))


def forget(work: Work, owner: Account) -> None:
    """Remove the secrets of a user or group that is deleted."""
    for secret in work.tx.secrets.all():
        if secret.owner == owner:
            work.tx.secrets.delete(owner, secret.name)


def check_uses(tx: Transaction, user: str, texts: Sequence[str]) -> None:
    """Refuse a job that names a secret that its user does not have."""
    if texts:
        found(tx, user, texts)


def found(tx: Transaction, user: str, texts: Sequence[str]) -> dict[str, SecretRecord]:
    """The secrets that a job of this user names, by name. Raises Invalid for one that does not exist."""
    try:
        uses = parse_secrets(tuple(texts))
    except ValueError as error:
        raise Invalid(str(error), field="secrets") from None
    known = _usable(tx, user)
    return {use.name: _existing(known, use.name, field="secrets") for use in uses}


def named(tx: Transaction, user: str, name: str, *, field: str) -> SecretRecord:
    """The secret of this name that a job of this user may use. Raises Invalid."""
    return _existing(_usable(tx, user), name, field=field)


def _usable(tx: Transaction, user: str) -> dict[str, SecretRecord]:
    """The secrets of the user and of the user's group by name; the user's own go first."""
    group = _group_of(tx, user)
    known: dict[str, SecretRecord] = {}
    for secret in tx.secrets.all():
        is_own = secret.owner == Account(kind=AccountKind.USER, name=user)
        is_groups = group is not None and secret.owner == Account(kind=AccountKind.GROUP, name=group)
        if is_own or (is_groups and secret.name not in known):
            known[secret.name] = secret
    return known


def _existing(known: Mapping[str, SecretRecord], name: str, *, field: str) -> SecretRecord:
    if name not in known:
        raise Invalid(f"there is no secret {name[:80]!r}: store it with corral secret set {name[:80]}", field=field)
    return known[name]


def key_of(secret: SecretRecord) -> Key:
    return secret.owner.kind, secret.owner.name, secret.name


def renew(work: Work, renewed: Mapping[Key, tuple[str, str]]) -> None:
    """Store secrets under a newer key: by owner and name, the stored value and the new one."""
    for secret in work.tx.secrets.all():
        before, after = renewed.get(key_of(secret), ("", ""))
        # Its owner may have replaced the value meanwhile.
        if after and secret.value == before:
            work.tx.secrets.save(replace(secret, value=after))
    work.record(SYSTEM, "secret.renewed", PLATFORM, detail={"secrets": len(renewed)})


def _owner_for(tx: Transaction, caller: Caller, group: str | None) -> Account:
    if group is None:
        return Account(kind=AccountKind.USER, name=caller.name)
    require_operator(caller, "manage secrets of groups")
    if all(known.name != group for known in tx.people.groups()):
        raise NotFound(f"there is no group {group[:80]!r}", field="group")
    return Account(kind=AccountKind.GROUP, name=group)


def _group_of(tx: Transaction, user: str) -> str | None:
    record = tx.people.user(user)
    return None if record is None else record.group


def _is_seen(secret: SecretRecord, caller: Caller, group: str | None) -> bool:
    if secret.owner.kind is AccountKind.USER:
        return secret.owner.name == caller.name
    return caller.is_operator or secret.owner.name == group


def _owner_name(owner: Account) -> str:
    return owner.name if owner.kind is AccountKind.USER else ""


def _detail(owner: Account) -> dict[str, str]:
    return {} if owner.kind is AccountKind.USER else {"group": owner.name}
