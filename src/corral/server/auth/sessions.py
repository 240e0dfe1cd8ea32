"""Browser sessions: how one begins after any kind of sign-in, and its cookie."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from starlette.responses import Response

from corral.control.live.unit_of_work import PLATFORM, Caller, Work
from corral.control.people import user_accounts
from corral.control.ports import Transaction
from corral.control.records import CredentialKind, CredentialRecord, EventFilter, Role, UserRecord
from corral.core.people.password_rules import refusal_of
from corral.server.auth.callers import is_secure, session_cookie
from corral.server.auth.secrets import new_credential_id, new_csrf_token, new_session_id, secret_hash
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem, invalid_field
from corral.server.settings.settings import Settings

log = logging.getLogger("corral.server.auth")


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    secret: str
    csrf: str
    lifetime_seconds: float


async def open_session(context: ServerContext, user: UserRecord, address: str) -> Session:
    session = Session(
        secret=new_session_id(),
        csrf=new_csrf_token(),
        lifetime_seconds=context.settings.server.session_hours * 3600,
    )
    now = context.clock.now()
    credential = CredentialRecord(
        id=new_credential_id(),
        kind=CredentialKind.SESSION,
        user=user.name,
        secret_hash=secret_hash(session.secret),
        csrf=session.csrf,
        created_at=now,
        expires_at=now + session.lifetime_seconds,
    )
    caller = Caller(name=user.name, is_operator=user.role is Role.OPERATOR, source=address)
    await context.execute(sign_in, caller, credential, user)
    return session


async def user_with_password(context: ServerContext, name: str, password: str, address: str) -> UserRecord:
    """The user, if the password is right; takes the same time for every name."""
    await check_pace(context, name, address)
    user = await context.read(lambda tables: tables.people.user(name))
    known = user.password_hash if user is not None and not user.disabled else None
    if not await context.passwords.matches(known, password) or user is None:
        log.warning("failed sign-in from %s", address)
        note_failed_sign_in(context, user.name if user is not None else None, address)
        raise wrong_password(context, name, address)
    context.throttle.succeeded(name, address)
    return user


def wrong_password(context: ServerContext, name: str, address: str) -> Problem:
    return Problem(
        401,
        "Not signed in",
        "The user name or the password is wrong.",
        slug="wrong-password",
        headers=rate_headers(context, context.throttle.left(name, address), 0),
    )


async def check_pace(context: ServerContext, name: str, address: str, *, user: str | None = None) -> None:
    """Count an attempt with a password. Raises a 429 problem if it comes too soon after others that failed. `user` is
    the user behind the name, if it is another one."""
    throttle = context.throttle
    wait = throttle.begin(name, address)
    if wait > 0 and throttle.needs_known_addresses(name, address):
        for known in await context.read(_addresses_of, user or name):
            throttle.know(name, known)
        wait = throttle.begin(name, address)
    if wait > 0:
        seconds = math.ceil(wait)
        raise Problem(
            429,
            "Too many attempts",
            f"Too many failed sign-ins: wait {seconds} seconds.",
            headers={"Retry-After": str(seconds), **rate_headers(context, 0, seconds)},
            numbers={"retry_after_seconds": seconds},
        )


def rate_headers(context: ServerContext, left: int, seconds: int) -> dict[str, str]:
    """Attempts that remain and the wait, in the form of the IETF's draft of RateLimit fields."""
    throttle = context.throttle
    return {
        "RateLimit-Policy": f'"sign-in";q={throttle.attempts};w={math.ceil(throttle.longest_seconds)}',
        "RateLimit": f'"sign-in";r={left};t={seconds}',
    }


def note_failed_sign_in(context: ServerContext, user: str | None, address: str, **detail: str) -> None:
    """Records a failed sign-in in the audit log. An unknown name is not recorded: people type passwords into the wrong
    field.
    """
    caller = Caller(name=PLATFORM, source=address)
    context.audit.note(caller, "user.sign-in-failed", user or "unknown", owner=user or "", detail=detail)


def _addresses_of(tables: Transaction, user: str) -> set[str]:
    """Addresses of the user's latest sign-ins, from the audit log."""
    found = [
        event.source
        for action in ("user.signed-in", "token.created")
        for event in tables.events.page(EventFilter(actor=user, action=action), cursor=None, limit=50).items
    ]
    return {address for address in found if address}


async def replace_password(context: ServerContext, user: UserRecord, old: str, new: str, address: str) -> UserRecord:
    """Replaces the password during sign-in; sessions opened with the old password end."""
    check_new_password("new_password", new, before=old)
    caller = Caller(name=user.name, is_operator=user.role is Role.OPERATOR, source=address)
    hashed = await context.passwords.hash(new)
    changed = await context.execute(user_accounts.change_password, caller, hashed, before=user)
    context.identities.forget(user.name)
    return changed


def check_new_password(field: str, new: str, *, before: str) -> None:
    refused = refusal_of(new)
    if refused is not None:
        raise invalid_field(field, refused)
    if new == before:
        raise invalid_field(field, "must differ from the present password")


def sign_in(work: Work, caller: Caller, credential: CredentialRecord, user: UserRecord) -> CredentialRecord:
    """Add the credential, and remove expired credentials of the same user, who was checked as given."""
    expired = [
        item.id
        for kind in CredentialKind
        for item in work.tx.credentials.of_user(caller.name, kind)
        if item.expires_at is not None and item.expires_at <= work.now
    ]
    added = user_accounts.add_credential(work, caller, credential, before=user)
    work.tx.credentials.delete(expired)
    return added


def set_session_cookie(answer: Response, settings: Settings, session: Session) -> None:
    answer.set_cookie(
        session_cookie(settings),
        session.secret,
        max_age=int(session.lifetime_seconds),
        httponly=True,
        samesite="lax",
        secure=is_secure(settings),
    )
