"""Signing in and out."""

from __future__ import annotations

import logging
import math

from fastapi import Request, Response
from starlette.responses import JSONResponse

from corral.control import people, permissions
from corral.control.ports import Transaction
from corral.control.records import CredentialKind, CredentialRecord, Function, Role, UserRecord
from corral.control.work import Caller, Work
from corral.server.auth.callers import COOKIE, AnyCaller, Context, SignedIn, address_of
from corral.server.auth.secrets import new_credential_id, new_csrf_token, new_session_id, new_token, secret_hash
from corral.server.context import ServerContext
from corral.server.problems import Problem
from corral.server.routing import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people import LoginCreate, LoginView, ProviderView

log = logging.getLogger("corral.server.auth")

router = resource_router("/auth", "sign-in")


@router.post("/login", operation_id="login", response_model=LoginView, responses=problems(429))
async def login(body: LoginCreate, request: Request, context: Context) -> Response:
    """With `token_name` the answer holds a bearer token, without it sets a session cookie."""
    address = address_of(request)
    user = await _checked_user(context, body, address)
    caller = Caller(name=user.name, is_operator=user.role is Role.OPERATOR, source=address)
    view = LoginView(user=user.name, role=user.role, must_change_password=user.must_change_password)
    now = context.clock.now()
    if body.token_name is not None:
        token = new_token()
        functions = await context.read(permissions.functions_of, user)
        # Whoever may not have tokens still signs in at the command line, for as long as in a browser.
        server = context.settings.server
        lifetime = server.token_days * 86400 if Function.TOKENS in functions else server.session_hours * 3600
        credential = CredentialRecord(
            id=new_credential_id(),
            kind=CredentialKind.TOKEN,
            user=user.name,
            name=body.token_name,
            secret_hash=secret_hash(token),
            created_at=now,
            expires_at=now + lifetime,
        )
        await context.execute(sign_in, caller, credential)
        return JSONResponse(view.model_copy(update={"token": token}).model_dump(mode="json", exclude_none=True))
    session, csrf = new_session_id(), new_csrf_token()
    lifetime = context.settings.server.session_hours * 3600
    credential = CredentialRecord(
        id=new_credential_id(),
        kind=CredentialKind.SESSION,
        user=user.name,
        secret_hash=secret_hash(session),
        csrf=csrf,
        created_at=now,
        expires_at=now + lifetime,
    )
    await context.execute(sign_in, caller, credential)
    answer = JSONResponse(view.model_copy(update={"csrf_token": csrf}).model_dump(mode="json", exclude_none=True))
    secure = context.settings.server.secure_cookie
    answer.set_cookie(COOKIE, session, max_age=int(lifetime), httponly=True, samesite="lax", secure=secure)
    return answer


@router.post("/logout", status_code=204, operation_id="logout", responses=problems(403))
async def logout(caller: AnyCaller, identity: SignedIn, context: Context) -> Response:
    """End this session, or revoke this token."""
    await context.execute(people.drop_credential, caller, identity.kind, identity.credential_id)
    context.identities.forget(identity.user)
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer


@router.get("/providers", operation_id="list_providers")
async def list_providers() -> ListView[ProviderView]:
    """The ways to sign in."""
    return ListView(items=[ProviderView(id="local")])


async def _checked_user(context: ServerContext, body: LoginCreate, address: str) -> UserRecord:
    """The user, if the password is right; always after the same work, whoever it is."""
    wait = context.throttle.begin(body.user, address)
    if wait > 0:
        seconds = math.ceil(wait)
        raise Problem(
            429,
            "Too many attempts",
            f"Too many failed sign-ins: wait {seconds} seconds.",
            headers={"Retry-After": str(seconds)},
            numbers={"retry_after_seconds": seconds},
        )
    user = await context.read(lambda tables: tables.people.user(body.user))
    known = user.password_hash if user is not None and not user.disabled else None
    if not await context.passwords.matches(known, body.password) or user is None:
        # The name is not logged: people type passwords into the wrong field.
        log.warning("failed sign-in from %s", address)
        raise Problem(401, "Not signed in", "The user name or the password is wrong.", slug="wrong-password")
    context.throttle.succeeded(body.user, address)
    return user


def sign_in(work: Work, caller: Caller, credential: CredentialRecord) -> CredentialRecord:
    """Add the credential, and tidy away those of the same user that have expired."""
    work.tx.credentials.delete(_expired(work.tx, caller.name, work.now))
    return people.add_credential(work, caller, credential)


def _expired(tables: Transaction, user: str, now: float) -> list[str]:
    return [
        credential.id
        for kind in CredentialKind
        for credential in tables.credentials.of_user(user, kind)
        if credential.expires_at is not None and credential.expires_at <= now
    ]
