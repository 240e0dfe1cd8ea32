"""The page at `/`: a sign-in form, or who is signed in. Forms are sent as browsers do it, and only from pages of ours.

A form of somebody who is not signed in yet carries a stamp that fits a cookie of the same browser; one of somebody who
is signed in carries the session's own token.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from corral.control import people
from corral.control.errors import Refusal
from corral.control.records import CredentialKind, CredentialRecord
from corral.server.auth.callers import COOKIE, Context, address_of
from corral.server.auth.identity import Identity
from corral.server.auth.passwords import refusal_of
from corral.server.auth.secrets import new_credential_id, new_token, secret_hash
from corral.server.auth.sessions import is_secure, open_session, set_session_cookie, user_with_password
from corral.server.auth.tickets import safe_next
from corral.server.context import ServerContext
from corral.server.pages.signin import account_page, failure_page, sign_in_page, token_page
from corral.server.problems import Problem
from corral.server.routes.signin import login_path
from corral.server.routing import StrictRoute

router = APIRouter(route_class=StrictRoute, include_in_schema=False)

FORM_COOKIE = "corral_form"
_MAX_FORM_BYTES = 16 * 1024


@router.get("/")
async def home(
    request: Request, context: Context, next: Annotated[str | None, Query(max_length=2000)] = None
) -> Response:
    identity = await _identity(request, context)
    if identity is None:
        return await _sign_in_form(request, context, next=safe_next(next) or "/")
    return await _account(context, identity)


@router.post("/signin")
async def sign_in(request: Request, context: Context) -> Response:
    form = await _form(request)
    target = safe_next(form.get("next")) or "/"
    if not context.sign_in.tickets.is_own_form(request.cookies.get(FORM_COOKIE, ""), form.get("stamp", "")):
        message = "The page was too old, or cookies are switched off. Please try again."
        return await _sign_in_form(request, context, next=target, message=message, status=400)
    name, address = form.get("user", "")[:253], address_of(request)
    try:
        user = await user_with_password(context, name, form.get("password", "")[:1024], address)
    except Problem as problem:
        answer = await _sign_in_form(
            request, context, next=target, message=problem.detail, user=name, status=problem.status
        )
        answer.headers.update(problem.headers)
        return answer
    session = await open_session(context, user, address)
    answer = RedirectResponse("/" if user.must_change_password else target, status_code=303)
    set_session_cookie(answer, context.settings, session)
    return answer


@router.post("/signout")
async def sign_out(request: Request, context: Context) -> Response:
    identity, _ = await _own_form(request, context)
    if identity is None:
        return _not_ours()
    caller = identity.caller(address_of(request))
    await context.execute(people.drop_credential, caller, CredentialKind.SESSION, identity.credential_id)
    context.identities.forget(identity.user)
    answer = RedirectResponse("/", status_code=303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer


@router.post("/password")
async def change_password(request: Request, context: Context) -> Response:
    """Ends all sessions of the user, and begins a new one here."""
    identity, form = await _own_form(request, context)
    if identity is None:
        return _not_ours()
    address = address_of(request)
    try:
        await user_with_password(context, identity.user, form.get("old", "")[:1024], address)
    except Problem as problem:
        return await _account(context, identity, message=problem.detail, status=problem.status)
    new = form.get("new", "")
    refused = "must differ from the present one" if new == form.get("old") else refusal_of(new)
    if refused is not None:
        return await _account(context, identity, message=f"The new password {refused}.", status=422)
    hashed = await context.passwords.hash(new)
    user = await context.execute(people.change_password, identity.caller(address), hashed)
    context.identities.forget(identity.user)
    answer = RedirectResponse("/", status_code=303)
    set_session_cookie(answer, context.settings, await open_session(context, user, address))
    return answer


@router.post("/token")
async def make_token(request: Request, context: Context) -> Response:
    """A token for the command line: the way there for those who have no password here."""
    identity, form = await _own_form(request, context)
    if identity is None:
        return _not_ours()
    if identity.must_change_password:
        return await _account(context, identity, message="Replace the one-time password first.", status=403)
    name = "".join(char for char in form.get("name", "") if char.isprintable()).strip()[:63]
    token, now = new_token(), context.clock.now()
    credential = CredentialRecord(
        id=new_credential_id(),
        kind=CredentialKind.TOKEN,
        user=identity.user,
        name=name or "command line",
        secret_hash=secret_hash(token),
        created_at=now,
        expires_at=now + context.settings.server.token_days * 86400,
    )
    try:
        await context.execute(people.create_token, identity.caller(address_of(request)), credential)
    except Refusal as refusal:
        return await _account(context, identity, message=refusal.detail, status=refusal.status)
    server = context.settings.server.public_url or f"{request.url.scheme}://{request.url.netloc}"
    return HTMLResponse(token_page(server=server, token=token))


async def _sign_in_form(
    request: Request, context: ServerContext, *, next: str, message: str = "", user: str = "", status: int = 200
) -> Response:
    known = await context.read(lambda tables: tables.providers.all())
    suffix = "" if next == "/" else "?" + urlencode({"next": next})
    links = [(provider.title, login_path(provider.id) + suffix) for provider in known if provider.enabled]
    browser = request.cookies.get(FORM_COOKIE, "") or secrets.token_urlsafe(24)
    stamp = context.sign_in.tickets.form_stamp(browser)
    page = sign_in_page(stamp=stamp, providers=links, next=next, message=message, user=user)
    answer = HTMLResponse(page, status_code=status)
    secure = is_secure(context.settings)
    answer.set_cookie(FORM_COOKIE, browser, httponly=True, samesite="strict", secure=secure)
    return answer


async def _account(context: ServerContext, identity: Identity, *, message: str = "", status: int = 200) -> Response:
    user = await context.read(people.existing, identity.user)
    page = account_page(
        user=user.name,
        role=user.role.value,
        csrf=identity.csrf,
        must_change_password=user.must_change_password,
        has_password=user.password_hash is not None,
        message=message,
    )
    return HTMLResponse(page, status_code=status)


async def _identity(request: Request, context: ServerContext) -> Identity | None:
    session = request.cookies.get(COOKIE)
    return None if session is None else await context.identities.of_secret(session, CredentialKind.SESSION)


async def _own_form(request: Request, context: ServerContext) -> tuple[Identity | None, dict[str, str]]:
    """Who sends the form, if it comes from a page of ours."""
    identity, form = await _identity(request, context), await _form(request)
    if identity is None or not hmac.compare_digest(form.get("csrf", "").encode(), identity.csrf.encode()):
        return None, form
    return identity, form


async def _form(request: Request) -> dict[str, str]:
    body = await request.body()
    if len(body) > _MAX_FORM_BYTES or not request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    ):
        return {}
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=20, keep_blank_values=True)
    except ValueError:
        return {}
    return {name: value.replace("\x00", "") for name, value in pairs}


def _not_ours() -> Response:
    detail = "The form does not belong to this session: sign in and try again."
    return HTMLResponse(failure_page("Not done", detail), status_code=403)
