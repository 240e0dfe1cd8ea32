"""Users, their roles and quotas. Passwords and tokens arrive here hashed; how is the server's business."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Taken, WrongState
from corral.control.ports import Transaction
from corral.control.records import CredentialKind, CredentialRecord, JobFilter, QuotaRecord, Role, UserRecord
from corral.control.work import PLATFORM, Caller, Work
from corral.core.changes import PutQuota
from corral.core.model import JobKind, Quota

USER_NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


def create_user(
    work: Work, caller: Caller, name: str, *, role: Role | None = None, password_hash: str | None = None
) -> UserRecord:
    """A new user. The first one is always an operator, later ones are scientists unless said otherwise."""
    users = work.tx.people.users()
    if users:
        _only_operators(caller)
    if not USER_NAME.fullmatch(name) or name == PLATFORM:
        raise Invalid(
            f"the user name {name!r} is not allowed: up to 32 small letters, digits, -, _ and ., not {PLATFORM!r}",
            field="name",
        )
    if any(user.name == name for user in users):
        raise Taken(f"there is a user {name!r} already", field="name", name=name)
    if work.tx.jobs.page(JobFilter(user=name), sort="id", cursor=None, limit=1).items:
        # A newcomer must not come into a former user's jobs and logs.
        raise Taken(f"there are jobs of a former user {name!r}: choose another name", field="name", name=name)
    user = UserRecord(
        name=name,
        role=(role or Role.SCIENTIST) if users else Role.OPERATOR,
        password_hash=password_hash,
        created_at=work.now,
    )
    work.tx.people.add_user(user)
    work.record(caller, "user.created", name, owner=name, detail={"role": user.role})
    return user


def edit_user(
    work: Work,
    caller: Caller,
    name: str,
    *,
    role: Role | None = None,
    disabled: bool | None = None,
    password_hash: str | None = None,
) -> UserRecord:
    _only_operators(caller)
    user = existing(work.tx, name)
    changed = replace(
        user,
        role=role or user.role,
        disabled=user.disabled if disabled is None else disabled,
        password_hash=password_hash or user.password_hash,
        must_change_password=user.must_change_password or password_hash is not None,
    )
    if _is_acting_operator(user) and not _is_acting_operator(changed):
        _protect_last_operator(work, name)
    work.tx.people.save_user(changed)
    if changed.disabled or password_hash is not None:
        _sign_out(work, name)
    detail = {"role": changed.role, "disabled": changed.disabled, "password": password_hash is not None}
    work.record(caller, "user.edited", name, owner=name, detail=detail)
    return changed


def delete_user(work: Work, caller: Caller, name: str) -> None:
    """All of it, or refused: not while a job is active, and never the last operator."""
    _only_operators(caller)
    user = existing(work.tx, name)
    active = [job.id for job in work.state.snapshot.jobs.values() if job.user == name]
    if active:
        raise InUse(
            f"user {name} has {len(active)} active jobs: {', '.join(active[:5])}", field="name", jobs=active[:20]
        )
    if _is_acting_operator(user):
        _protect_last_operator(work, name)
    for _, kind in [key for key in work.state.snapshot.quotas if key[0] == name]:
        work.change(PutQuota(user=name, kind=kind, quota=Quota()))
    work.tx.people.delete_user(name)
    work.record(caller, "user.deleted", name, owner=name)


def change_password(work: Work, caller: Caller, password_hash: str) -> UserRecord:
    """One's own; the old one was checked by the server. Other sessions end, this caller signs in again."""
    user = existing(work.tx, caller.name)
    changed = replace(user, password_hash=password_hash, must_change_password=False)
    work.tx.people.save_user(changed)
    sessions = work.tx.credentials.of_user(user.name, CredentialKind.SESSION)
    work.tx.credentials.delete([credential.id for credential in sessions])
    work.record(caller, "user.password-changed", user.name, owner=user.name)
    return changed


def set_quota(work: Work, caller: Caller, name: str, quotas: Mapping[JobKind, Quota]) -> None:
    """What a user may hold per kind. What runs already is never touched."""
    _only_operators(caller)
    existing(work.tx, name)
    for kind, quota in quotas.items():
        work.tx.people.save_quota(QuotaRecord(user=name, kind=kind, quota=quota))
        work.change(PutQuota(user=name, kind=kind, quota=quota))
    work.record(caller, "user.quota-set", name, owner=name, detail={"kinds": [str(kind) for kind in quotas]})


def add_credential(work: Work, caller: Caller, credential: CredentialRecord) -> CredentialRecord:
    work.tx.credentials.add(credential)
    action = "token.created" if credential.kind is CredentialKind.TOKEN else "user.signed-in"
    work.record(caller, action, credential.user, owner=credential.user, detail={"id": credential.id})
    return credential


def drop_credential(work: Work, caller: Caller, kind: CredentialKind, credential_id: str) -> CredentialRecord:
    """One of the caller's own."""
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


def _is_acting_operator(user: UserRecord) -> bool:
    return user.role is Role.OPERATOR and not user.disabled


def _protect_last_operator(work: Work, name: str) -> None:
    if not any(_is_acting_operator(user) for user in work.tx.people.users() if user.name != name):
        raise WrongState(f"{name} is the last operator", field="role")


def _sign_out(work: Work, name: str) -> None:
    credentials = [item for kind in CredentialKind for item in work.tx.credentials.of_user(name, kind)]
    work.tx.credentials.delete([credential.id for credential in credentials])


def _only_operators(caller: Caller) -> None:
    if not caller.is_operator:
        raise Forbidden("only operators manage users")
