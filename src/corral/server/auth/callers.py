"""Authentication: every route except a few open ones takes its caller from here.

Decides whether a request comes from a signed-in user, from which page, and whether the scope of its token covers the
route. The use cases decide what the caller may do; `Operator` checks routes that are for operators only.
"""

from __future__ import annotations

import hmac
import re
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from corral.control.live.unit_of_work import Caller
from corral.control.records import CredentialKind, Scope
from corral.server.auth.identity import Identity
from corral.server.http.context import ServerContext, context_of
from corral.server.http.problems import Problem
from corral.server.http.strict_route import PREFIX
from corral.server.settings.settings import Settings
from corral.server.storage.store_reads import current_user

COOKIE = "corral_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Routes for a session with a one-time password: read the account, replace the password, sign out.
_WITH_ONE_TIME_PASSWORD = frozenset({f"{PREFIX}/me", f"{PREFIX}/me/password", f"{PREFIX}/auth/logout"})
#: What a token of scope `jobs` may change.
_JOB_PATHS = re.compile(rf"{PREFIX}/(presets/[^/]+/run|jobs|tasks|workbenches)([/:].*)?")
#: At most so many cookies of one name are checked.
_MAX_SESSIONS = 8
#: Every token may end itself.
_WITH_ANY_SCOPE = frozenset({f"{PREFIX}/auth/logout"})

Context = Annotated[ServerContext, Depends(context_of)]


async def identity_of(request: Request, context: Context) -> Identity:
    """The identity behind the token or the session of a request. Raises a 401 or 403 problem."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        of_token = await _of_bearer(authorization, context)
        current_user.set(of_token.user)
        _check_scope(request, of_token)
        if of_token.must_change_password and request.url.path not in _WITH_ONE_TIME_PASSWORD:
            raise password_change_required()
        return of_token
    _check_page(request, context)
    identity = await _of_session(request, context)
    current_user.set(identity.user)
    if request.method not in SAFE_METHODS:
        _check_csrf(request, identity)
    if identity.must_change_password and request.url.path not in _WITH_ONE_TIME_PASSWORD:
        raise password_change_required()
    return identity


async def bearer_of(connection: HTTPConnection, context: ServerContext) -> Identity:
    """The identity of a program that uses a workbench at this address. Raises a 401 or 403 problem.

    Browsers' pages cannot send a token. Access to a workbench runs programs there, so a read-only token is not
    enough.
    """
    authorization = connection.headers.get("authorization")
    if authorization is None:
        raise _not_signed_in("Send a bearer token; a browser opens the workbench from the console.")
    origin = connection.headers.get("origin")
    if origin is not None and not is_own_origin(origin, connection, context):
        raise _from_elsewhere()
    of_token = await _of_bearer(authorization, context)
    current_user.set(of_token.user)
    _require_scope(of_token, {Scope.FULL, Scope.JOBS})
    if of_token.must_change_password:
        raise password_change_required()
    return of_token


def is_own_origin(origin: str, connection: HTTPConnection, context: ServerContext) -> bool:
    """Whether a page of this server sent the request: of the public address, or of the address of the request."""
    given = urlsplit(origin)
    if given.scheme not in ("http", "https"):
        return False
    public = context.settings.server.public_url
    own = {connection.headers.get("host", "").lower()}
    if public is not None and given.scheme == urlsplit(public).scheme:
        own.add(urlsplit(public).netloc.lower())
    return given.netloc != "" and given.netloc.lower() in own


async def check_own_page(request: Request, context: Context) -> None:
    """Checks the origin of a sign-in, for which no session with a CSRF token exists yet. Raises a 403 or 415 problem.

    A page of another site could otherwise sign its visitors in as its author, who then sees their actions. Programs
    send neither header. Browsers state how the page is related to this server; this header has precedence, since a
    proxy may have changed the address of the request. Forms cannot send JSON.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_own = site in ("same-origin", "none") if site else origin is None or is_own_origin(origin, request, context)
    if not is_own:
        raise _from_elsewhere()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem(415, "Not JSON", "The body must be JSON, with Content-Type: application/json.", slug="not-json")


def session_cookie(settings: Settings) -> str:
    """The cookie's name. If cookies are sent over HTTPS only, it has the prefix `__Host-`: browsers accept such a
    cookie from this host only, not from related hosts such as a workbench's."""
    return f"__Host-{COOKIE}" if is_secure(settings) else COOKIE


def is_secure(settings: Settings) -> bool:
    """Whether cookies are sent over HTTPS only."""
    server = settings.server
    return server.secure_cookie or server.has_tls or (server.public_url or "").startswith("https://")


def cookie_values(connection: HTTPConnection, name: str) -> list[str]:
    """All values that a browser sent for one name: pages of the same host can set further cookies of that name."""
    pairs = [part.strip().partition("=") for line in connection.headers.getlist("cookie") for part in line.split(";")]
    return list(dict.fromkeys(value.strip() for found, _, value in pairs if found.strip() == name))


SignedIn = Annotated[Identity, Depends(identity_of)]


async def caller_of(request: Request) -> Caller:
    # One dependency in place of three: FastAPI's work for each of them is a tenth of a short request.
    identity = await identity_of(request, await context_of(request))
    return identity.caller(address_of(request))


async def operator_of(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
    if not caller.is_operator:
        raise Problem(403, "Not allowed", "Only operators may do this.", slug="forbidden")
    return caller


AnyCaller = Annotated[Caller, Depends(caller_of)]
Operator = Annotated[Caller, Depends(operator_of)]


def address_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""


async def _of_session(request: Request, context: ServerContext) -> Identity:
    given = cookie_values(request, session_cookie(context.settings))
    if not given:
        raise _not_signed_in("Sign in first: send a bearer token, or sign in at /api/v1/auth/login.")
    found = [await context.identities.of_secret(secret, CredentialKind.SESSION) for secret in given[-_MAX_SESSIONS:]]
    valid = [identity for identity in found if identity is not None]
    if len({identity.user for identity in valid}) > 1 or len(given) > _MAX_SESSIONS:
        # Another page of this host has set further cookies of the same name.
        raise TwoSessions(request, session_cookie(context.settings))
    if not valid:
        raise _not_signed_in("The session has ended: sign in again.")
    return valid[0]


class TwoSessions(Problem):
    """Remove session cookies from the browser that this server did not set."""

    def __init__(self, request: Request, name: str) -> None:
        super().__init__(401, "Two sessions", "This browser sent sessions of two users: load the page again.")
        parts = request.url.path.split("/")
        self._name = name
        self._paths = {"/".join(parts[:end]) + slash for end in range(2, len(parts) + 1) for slash in ("", "/")}
        self._domains = _domains(request.url.hostname or "")

    def response(self) -> Response:
        answer = super().response()
        for path in sorted(self._paths):
            answer.delete_cookie(self._name, path=path, samesite="lax")
        for domain in self._domains:
            for path in sorted({"/", *self._paths}):
                answer.delete_cookie(self._name, path=path, domain=domain, samesite="lax")
        return answer


def _domains(host: str) -> list[str]:
    """The domains for which a page of this host or of a subdomain can set cookies. An IP address and a name with one
    part have only cookies of their own, which are the server's."""
    labels = host.split(".")
    if ":" in host or labels[-1].isdigit():
        return []
    return [".".join(labels[start:]) for start in range(len(labels) - 1)]


def _check_page(request: Request, context: ServerContext) -> None:
    """A session is valid for this server's own pages, and for navigation to its addresses from anywhere. A page at
    another port of this host is foreign, although browsers send the same cookies. Raises a 403 problem."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_going = request.headers.get("sec-fetch-mode") == "navigate" and request.method in SAFE_METHODS
        is_own = site in ("same-origin", "none") or is_going
    else:
        is_own = origin is None or is_own_origin(origin, request, context)
    if not is_own:
        raise _from_elsewhere()


async def _of_bearer(authorization: str, context: ServerContext) -> Identity:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _not_signed_in("The Authorization header must be of the form: Bearer TOKEN.")
    identity = await context.identities.of_secret(token.strip(), CredentialKind.TOKEN)
    if identity is None:
        raise _not_signed_in("The token is unknown, has expired, or its user is disabled.")
    return identity


def _check_scope(request: Request, identity: Identity) -> None:
    """All scopes may read; changes need a scope that covers the route."""
    path = request.url.path
    if request.method in SAFE_METHODS or path in _WITH_ANY_SCOPE:
        return
    _require_scope(identity, {Scope.FULL, Scope.JOBS} if _JOB_PATHS.fullmatch(path) else {Scope.FULL})


def _require_scope(identity: Identity, enough: set[Scope]) -> None:
    if not identity.scopes & enough:
        needed = (Scope.JOBS if Scope.JOBS in enough else Scope.FULL).value
        given = ", ".join(sorted(identity.scopes)) or "none"
        detail = f"This needs a token of scope {needed}; this one has {given}."
        raise Problem(
            403,
            "The scope of the token is not sufficient",
            detail,
            slug="insufficient-scope",
            numbers={"scope": needed},
        )


def _check_csrf(request: Request, identity: Identity) -> None:
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode("latin-1", "replace"), identity.csrf.encode()):
        detail = f"Changes made with a session cookie need the header {CSRF_HEADER} with the token from sign-in."
        raise Problem(403, "CSRF token missing or wrong", detail, slug="csrf")


def password_change_required(hint: str = "") -> Problem:
    detail = f"Replace the one-time password first. {hint}".strip()
    return Problem(403, "Password must be changed", detail, slug="password-change-required")


def _from_elsewhere() -> Problem:
    return Problem(403, "From another page", "This comes from a page that is not this server's.", slug="other-origin")


def _not_signed_in(detail: str) -> Problem:
    return Problem(401, "Not signed in", detail, headers={"WWW-Authenticate": 'Bearer realm="corral"'})
