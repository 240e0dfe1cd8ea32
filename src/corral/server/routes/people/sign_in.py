"""Sign-in with a provider in a browser. Errors are HTML pages for browsers and problem documents for programs."""

from __future__ import annotations

import logging
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from corral.control.errors import NotFound, Refusal
from corral.control.people import sign_in_providers
from corral.control.ports import Transaction
from corral.control.records import ProviderKind, ProviderRecord
from corral.server.auth.callers import Context, address_of, is_secure
from corral.server.auth.directory_sign_in import refused
from corral.server.auth.outside import ProviderFailed
from corral.server.auth.sessions import note_failed_sign_in, open_session, set_session_cookie
from corral.server.auth.tickets import TICKET_SECONDS, safe_next
from corral.server.http.context import ServerContext
from corral.server.http.pages.plain import failure_page
from corral.server.http.problems import Problem, invalid_field
from corral.server.http.strict_route import PREFIX, StrictRoute

log = logging.getLogger("corral.server.auth")

TICKET_COOKIE = "corral_ticket"
_ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": text,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemView"}},
            "text/html": {"schema": {"type": "string"}},
        },
    }
    for status, text in {
        400: "The answer does not belong to a sign-in of this browser",
        403: "Refused by the provider, not on-boarded, or disabled",
        404: "There is no such provider",
        409: "Switched off, or no name is left",
        422: "A parameter is not valid",
        502: "The provider cannot be reached, or its answer is not valid",
        503: "Unavailable at this moment",
    }.items()
}
_REDIRECT: dict[int | str, dict[str, Any]] = {
    302: {"description": "Go there", "headers": {"Location": {"schema": {"type": "string"}}}}
}

router = APIRouter(prefix=f"{PREFIX}/auth", tags=["sign-in"])


def login_path(provider_id: str) -> str:
    return f"{PREFIX}/auth/{provider_id}/login"


def callback_uri(request: Request, context: ServerContext, provider_id: str) -> str:
    """The redirect address for the provider: the configured address, otherwise the address of this request."""
    base = context.settings.server.public_url or f"{request.url.scheme}://{request.url.netloc}"
    return f"{base}{_callback_path(provider_id)}"


async def begin_sign_in(
    id: str,
    request: Request,
    context: Context,
    next: Annotated[
        str | None, Query(max_length=2000, description="Path of this server to open after sign-in.")
    ] = None,
) -> Response:
    """Send the browser to the provider, with state, nonce and a PKCE challenge."""
    if next is not None and safe_next(next) is None:
        return answer_of(request, invalid_field("next", "must be a path of this server, such as /api/docs"))
    try:
        provider = await context.read(_enabled, id)
        redirect_uri = callback_uri(request, context, id)
        url, ticket = await context.sign_in.begin(provider, redirect_uri=redirect_uri, next=safe_next(next) or "/")
    except (Refusal, ProviderFailed) as error:
        return answer_of(request, _problem(error))
    answer = RedirectResponse(url, status_code=302)
    name, path = _ticket_cookie(context, id)
    answer.set_cookie(
        name,
        context.sign_in.tickets.sealed(ticket),
        max_age=TICKET_SECONDS,
        path=path,
        httponly=True,
        # Lax, not strict: the browser comes back from another site.
        samesite="lax",
        secure=is_secure(context.settings),
    )
    return answer


# Unknown parameters are refused here as everywhere; parameters of the callback are the provider's choice.
router.add_api_route(
    "/{id}/login",
    begin_sign_in,
    methods=["GET"],
    operation_id="begin_sign_in",
    status_code=302,
    response_class=RedirectResponse,
    responses={**_REDIRECT, **{status: _ANSWERS[status] for status in (404, 422, 502, 503)}},
    route_class_override=StrictRoute,
)


@router.get(
    "/{id}/callback",
    operation_id="finish_sign_in",
    status_code=302,
    response_class=RedirectResponse,
    responses={**_REDIRECT, **_ANSWERS},
)
async def finish_sign_in(id: str, request: Request, context: Context) -> Response:
    """Complete a sign-in: the provider redirects the browser here. The answer sets a session, or shows the reason of
    the failure."""
    try:
        answer = await _finished(id, request, context)
    except (Refusal, ProviderFailed) as error:
        log.warning("sign-in with %.40r failed: %s", id, error)
        note_failed_sign_in(context, None, address_of(request), provider=id[:40])
        answer = answer_of(request, _problem(error))
    name, path = _ticket_cookie(context, id)
    answer.delete_cookie(name, path=path, httponly=True, samesite="lax", secure=is_secure(context.settings))
    return answer


async def _finished(provider_id: str, request: Request, context: ServerContext) -> Response:
    query = dict(request.query_params)
    # Checked first, and for every provider id alike: a browser that did not begin the sign-in here learns nothing.
    ticket = context.sign_in.ticket_for(
        provider_id, request.cookies.get(_ticket_cookie(context, provider_id)[0]), query.get("state")
    )
    provider = await context.read(_enabled, provider_id)
    identity, member_of = await context.sign_in.finish(provider, ticket, query)
    outcome = await context.execute(sign_in_providers.sign_in, address_of(request), identity, member_of)
    if outcome.user is None:
        known = outcome.identity.user if outcome.is_disabled else None
        note_failed_sign_in(context, known, address_of(request), provider=provider_id)
        return answer_of(request, refused(provider, outcome))
    # The rules of the provider may have changed the role.
    context.identities.forget(outcome.user.name)
    session = await open_session(context, outcome.user, address_of(request))
    answer = RedirectResponse(ticket.next, status_code=302)
    set_session_cookie(answer, context.settings, session)
    return answer


def answer_of(request: Request, problem: Problem) -> Response:
    """A page for a browser, a problem for a program."""
    if "text/html" not in request.headers.get("accept", ""):
        return problem.response()
    return HTMLResponse(failure_page(problem.title, problem.detail), status_code=problem.status)


def _problem(error: Refusal | ProviderFailed) -> Problem:
    if isinstance(error, Refusal):
        return Problem(error.status, error.title, error.detail, slug=error.slug, numbers=error.numbers)
    return Problem(error.status, "Not signed in", f"{error} {error.hint}".strip(), slug=error.slug)


def _enabled(tables: Transaction, provider_id: str) -> ProviderRecord:
    provider = tables.providers.get(provider_id)
    # A directory redirects no browser: its passwords are typed here.
    if provider is None or not provider.enabled or provider.kind is ProviderKind.LDAP:
        raise NotFound(f"signing in with {provider_id!r} is not possible here", field="provider")
    return provider


def _callback_path(provider_id: str) -> str:
    return f"{PREFIX}/auth/{quote(provider_id, safe='')}/callback"


def _ticket_cookie(context: ServerContext, provider_id: str) -> tuple[str, str]:
    """The cookie's name and path. Over HTTPS the name has the prefix `__Host-`, which needs the path `/`: other hosts
    of the domain cannot set such a cookie. A planted cookie would sign users in as its author."""
    if is_secure(context.settings):
        return f"__Host-{TICKET_COOKIE}", "/"
    return TICKET_COOKIE, _callback_path(provider_id)
