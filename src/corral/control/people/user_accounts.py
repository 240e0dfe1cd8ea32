"""Users: profile, role, sign-in. Passwords and tokens are hashed by the server before they come here."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from corral.control.datasets import datasets
from corral.control.errors import InUse, Invalid, NotFound, SignedOut, Taken, WrongState
from corral.control.jobs import images
from corral.control.live.unit_of_work import PLATFORM, Caller, Work
from corral.control.people import budgets, first_steps, inbox_channels, permissions, quotas, secrets, user_inbox
from corral.control.people.operators import reachable_operators, require_operator
from corral.control.ports import Transaction
from corral.control.records import (
    DEFAULT_GROUP,
    EVERYONE,
    LOCAL_PROVIDER,
    CredentialKind,
    CredentialRecord,
    Function,
    JobFilter,
    Role,
    ShareKind,
    UserRecord,
)
from corral.control.scheduling import reservations
from corral.control.storage import volumes
from corral.core.counts import counted
from corral.core.names import USER_NAME
from corral.core.people.budgets import Account, AccountKind
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.snapshot.changes import DropMembership, PutMembership, PutQuota

Params = ParamSpec("Params")
Result = TypeVar("Result")

EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
MAX_EMAIL = 254
MAX_DISPLAY_NAME = 100
_SIGN_IN_AGAIN = "The account has changed meanwhile: sign in again."


def create_user(
    work: Work,
    caller: Caller,
    name: str,
    *,
    role: Role | None = None,
    password_hash: str | None = None,
    group: str | None = DEFAULT_GROUP,
    permission_group: str = EVERYONE,
    display_name: str = "",
    email: str = "",
    provider: str = LOCAL_PROVIDER,
    subject: str = "",
) -> UserRecord:
    """A new user. The first one is always an operator, later ones are scientists unless said otherwise."""
    users = work.tx.people.users()
    if users:
        require_operator(caller, "manage users")
    _check_new_name(work, name, {user.name for user in users})
    membership = _membership(work, group)
    permissions.existing(work.tx, permission_group)
    user = UserRecord(
        name=name,
        role=(role or Role.SCIENTIST) if users else Role.OPERATOR,
        password_hash=password_hash,
        created_at=work.now,
        group=group,
        permission_group=permission_group,
        display_name=_checked_display_name(display_name),
        email=_checked_email(email),
        provider=provider,
        subject=subject,
    )
    work.tx.people.add_user(user)
    work.change(PutMembership(user=name, membership=membership))
    quotas.give_default(work, name)
    detail = {"role": user.role, "group": group, "permission_group": permission_group}
    work.record(caller, "user.created", name, owner=name, detail=detail)
    return user


def edit_user(
    work: Work,
    caller: Caller,
    name: str,
    *,
    role: Role | None = None,
    disabled: bool | None = None,
    password_hash: str | None = None,
    permission_group: str | None = None,
    display_name: str | None = None,
    email: str | None = None,
) -> UserRecord:
    """Change what is given. A new password is for one use, and signs the user out everywhere, as disabling does."""
    require_operator(caller, "manage users")
    user = existing(work.tx, name)
    if permission_group is not None:
        permissions.existing(work.tx, permission_group)
    changed = replace(
        user,
        role=role or user.role,
        disabled=user.disabled if disabled is None else disabled,
        password_hash=password_hash or user.password_hash,
        must_change_password=user.must_change_password or password_hash is not None,
        permission_group=permission_group or user.permission_group,
        display_name=user.display_name if display_name is None else _checked_display_name(display_name),
        email=user.email if email is None else _checked_email(email),
    )
    if _is_acting_operator(user) and not _is_acting_operator(changed):
        _protect_last_operator(work, name)
    work.tx.people.save_user(changed)
    if disabled is not None:
        _forget_leaving(work, user)
    if changed.disabled or password_hash is not None:
        _sign_out(work, name)
    work.record(caller, "user.edited", name, owner=name, detail=_changes(user, changed))
    return changed


def edit_profile(
    work: Work, caller: Caller, *, display_name: str | None = None, email: str | None = None
) -> UserRecord:
    """Changes the caller's own display name and e-mail address."""
    user = existing(work.tx, caller.name)
    changed = replace(
        user,
        display_name=user.display_name if display_name is None else _checked_display_name(display_name),
        email=user.email if email is None else _checked_email(email),
    )
    work.tx.people.save_user(changed)
    work.record(caller, "user.edited", user.name, owner=user.name, detail=_changes(user, changed))
    return changed


def delete_user(work: Work, caller: Caller, name: str) -> None:
    """All of it, or refused: not while a job is active, and never the last operator."""
    require_operator(caller, "manage users")
    user = existing(work.tx, name)
    active = [job.id for job in work.state.snapshot.jobs.values() if job.user == name]
    if active:
        raise InUse(
            f"user {name} has {counted(len(active), 'active job')}: {', '.join(active[:5])}",
            field="name",
            jobs=active[:20],
        )
    if _is_acting_operator(user):
        _protect_last_operator(work, name)
    reservations.check_user_free(work.tx, name, work.now)
    volumes.check_user_free(work.tx, name)
    datasets.check_user_free(work.tx, name)
    for _, kind in [key for key in work.state.snapshot.quotas if key[0] == name]:
        work.change(PutQuota(user=name, kind=kind, quota=Quota()))
    work.change(DropMembership(user=name))
    budgets.forget(work, Account(kind=AccountKind.USER, name=name))
    secrets.forget(work, Account(kind=AccountKind.USER, name=name))
    images.forget_user(work, name)
    volumes.forget(work, ShareKind.USER, name)
    datasets.forget(work, ShareKind.USER, name)
    reservations.forget_user(work, name)
    user_inbox.forget(work, name)
    inbox_channels.forget(work, name)
    first_steps.forget(work, name)
    work.tx.people.delete_user(name)
    work.record(caller, "user.deleted", name, owner=name)


def change_password(
    work: Work,
    caller: Caller,
    password_hash: str,
    *,
    before: UserRecord | None = None,
    revoke_tokens: bool = False,
    kept: str = "",
) -> UserRecord:
    """Changes the caller's own password; the server has compared the old one with that of `before`. All sessions end.
    With `revoke_tokens` all tokens are revoked, too, except the one with the id `kept`.
    """
    user = signed_in(work.tx, caller.name, before)
    changed = replace(user, password_hash=password_hash, must_change_password=False)
    work.tx.people.save_user(changed)
    sessions = work.tx.credentials.of_user(user.name, CredentialKind.SESSION)
    tokens = work.tx.credentials.of_user(user.name, CredentialKind.TOKEN) if revoke_tokens else []
    revoked = [token.id for token in tokens if token.id != kept]
    work.tx.credentials.delete([*(session.id for session in sessions), *revoked])
    detail = {"revoked_tokens": len(revoked)} if revoke_tokens else {}
    work.record(caller, "user.password-changed", user.name, owner=user.name, detail=detail)
    return changed


def create_token(work: Work, caller: Caller, credential: CredentialRecord, *, by: str) -> CredentialRecord:
    """A token that outlives the sign-in, for programs. `by` is the id of the credential that asks for it: if that was
    revoked meanwhile, no new one must come out of it."""
    permissions.require(caller, Function.TOKENS)
    present = (work.tx.credentials.of_user(caller.name, kind) for kind in CredentialKind)
    if not any(known.id == by for credentials in present for known in credentials):
        raise SignedOut(_SIGN_IN_AGAIN)
    return add_credential(work, caller, credential)


def add_credential(
    work: Work, caller: Caller, credential: CredentialRecord, *, before: UserRecord | None = None
) -> CredentialRecord:
    """Stores the credential of a sign-in. The server has checked that the caller may have it: for the password of
    `before`, if there is one."""
    signed_in(work.tx, credential.user, before)
    work.tx.credentials.add(credential)
    work.tx.people.saw_user(credential.user, work.now)
    action = "token.created" if credential.kind is CredentialKind.TOKEN else "user.signed-in"
    work.record(caller, action, credential.user, owner=credential.user, detail={"id": credential.id})
    return credential


def signed_in(tx: Transaction, name: str, before: UserRecord | None = None) -> UserRecord:
    """The user, as long as what was checked about the account still holds. Passwords are compared for a moment, in
    which the account may be deleted, disabled, or get another password."""
    user = tx.people.user(name)
    has_changed = before is not None and user is not None and user.password_hash != before.password_hash
    if user is None or user.disabled or has_changed:
        raise SignedOut(_SIGN_IN_AGAIN)
    return user


def for_present_user(
    work: Work,
    caller: Caller,
    use_case: Callable[Concatenate[Work, Params], Result],
    /,
    *args: Params.args,
    **kwargs: Params.kwargs,
) -> Result:
    """Run a use case of a request that was accepted a moment ago, or a minute, if it looked up something outside. Its
    caller may have been deleted, disabled, or made a scientist since."""
    if caller.name != PLATFORM:
        user = signed_in(work.tx, caller.name)
        if caller.is_operator and user.role is not Role.OPERATOR:
            raise SignedOut(_SIGN_IN_AGAIN)
    return use_case(work, *args, **kwargs)


def drop_credential(work: Work, caller: Caller, kind: CredentialKind, credential_id: str) -> CredentialRecord:
    """Deletes one of the caller's own credentials."""
    found = [item for item in work.tx.credentials.of_user(caller.name, kind) if item.id == credential_id]
    if not found:
        raise NotFound(f"there is no {kind} {credential_id!r}", field="id")
    work.tx.credentials.delete([credential_id])
    action = "token.deleted" if kind is CredentialKind.TOKEN else "user.signed-out"
    work.record(caller, action, caller.name, owner=caller.name, detail={"id": credential_id})
    return found[0]


def existing(tx: Transaction, name: str) -> UserRecord:
    user = tx.people.user(name)
    if user is None:
        raise NotFound(f"there is no user {name!r}", field="user")
    return user


def _check_new_name(work: Work, name: str, taken: Collection[str]) -> None:
    if not USER_NAME.fullmatch(name) or name == PLATFORM:
        raise Invalid(
            f"the user name {name!r} is not allowed: up to 32 small letters, digits, -, _ and ., not {PLATFORM!r}",
            field="name",
        )
    if name in taken:
        raise Taken(f"there is a user {name!r} already", field="name", name=name)
    if work.tx.jobs.page(JobFilter(user=name), sort="id", cursor=None, limit=1).items:
        # A newcomer must not come into a former user's jobs and logs.
        raise Taken(f"there are jobs of a former user {name!r}: choose another name", field="name", name=name)


def _membership(work: Work, group: str | None) -> Membership:
    if group is None:
        return Membership()
    known = {record.name: record.pool for record in work.tx.people.groups()}
    if group not in known:
        there = ", ".join(known)
        raise Invalid(f"there is no group {group!r}; there are: {there}", field="group", known=list(known))
    return Membership(group=group, pool=known[group])


def _checked_display_name(text: str) -> str:
    if len(text) > MAX_DISPLAY_NAME or not text.isprintable():
        raise Invalid(f"a name has up to {MAX_DISPLAY_NAME} printable characters", field="display_name")
    return text.strip()


def _checked_email(text: str) -> str:
    if text and (len(text) > MAX_EMAIL or not EMAIL.fullmatch(text) or not text.isprintable()):
        raise Invalid("that is no e-mail address", field="email")
    return text


def _changes(before: UserRecord, after: UserRecord) -> dict[str, Any]:
    """The changed fields for the audit log; a new password is only reported as changed."""
    shown = ("role", "disabled", "permission_group", "display_name", "email")
    changed = {name: getattr(after, name) for name in shown if getattr(after, name) != getattr(before, name)}
    return changed | ({"password": True} if after.password_hash != before.password_hash else {})


def _is_acting_operator(user: UserRecord) -> bool:
    """An operator who can sign in and correct mistakes."""
    has_a_way_in = user.password_hash is not None or user.provider != LOCAL_PROVIDER
    return user.role is Role.OPERATOR and not user.disabled and has_a_way_in


def _protect_last_operator(work: Work, name: str) -> None:
    if all(user.name == name for user in reachable_operators(work.tx)):
        raise WrongState(f"{name} is the last operator who can sign in", field="role")


def _forget_leaving(work: Work, user: UserRecord) -> None:
    """An operator decides from now on whether the user is disabled, and no longer the user's directory."""
    known = work.tx.providers.identity(user.provider, user.subject)
    if known is not None and known.gone_at:
        work.tx.providers.save_identities([replace(known, gone_at=0.0)])


def _sign_out(work: Work, name: str) -> None:
    credentials = [item for kind in CredentialKind for item in work.tx.credentials.of_user(name, kind)]
    work.tx.credentials.delete([credential.id for credential in credentials])
