"""Browser sessions: how one begins, whatever vouched for its user, and the cookie that carries it."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from starlette.responses import Response

from corral.control import people
from corral.control.records import CredentialKind, CredentialRecord, Role, UserRecord
from corral.control.work import Caller, Work
from corral.server.auth.callers import is_secure, session_cookie
from corral.server.auth.secrets import new_credential_id, new_csrf_token, new_session_id, secret_hash
from corral.server.context import ServerContext
from corral.server.problems import Problem
from corral.server.settings import Settings

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
    await context.execute(sign_in, caller, credential)
    return session


async def user_with_password(context: ServerContext, name: str, password: str, address: str) -> UserRecord:
    """The user, if the password is right; always after the same work, whoever it is."""
    wait = context.throttle.begin(name, address)
    if wait > 0:
        seconds = math.ceil(wait)
        raise Problem(
            429,
            "Too many attempts",
            f"Too many failed sign-ins: wait {seconds} seconds.",
            headers={"Retry-After": str(seconds)},
            numbers={"retry_after_seconds": seconds},
        )
    user = await context.read(lambda tables: tables.people.user(name))
    known = user.password_hash if user is not None and not user.disabled else None
    if not await context.passwords.matches(known, password) or user is None:
        # The name is not logged: people type passwords into the wrong field.
        log.warning("failed sign-in from %s", address)
        raise Problem(401, "Not signed in", "The user name or the password is wrong.", slug="wrong-password")
    context.throttle.succeeded(name, address)
    return user


def sign_in(work: Work, caller: Caller, credential: CredentialRecord) -> CredentialRecord:
    """Add the credential, and tidy away those of the same user that have expired."""
    expired = [
        item.id
        for kind in CredentialKind
        for item in work.tx.credentials.of_user(caller.name, kind)
        if item.expires_at is not None and item.expires_at <= work.now
    ]
    work.tx.credentials.delete(expired)
    return people.add_credential(work, caller, credential)


def set_session_cookie(answer: Response, settings: Settings, session: Session) -> None:
    answer.set_cookie(
        session_cookie(settings),
        session.secret,
        max_age=int(session.lifetime_seconds),
        httponly=True,
        samesite="lax",
        secure=is_secure(settings),
    )
