"""The origin of a workbench: accepts tickets, checks the visitors' cookies, and forwards their requests.

Neither the console nor the API is available at this origin, and neither a session nor a token is accepted. The
workbench's answers are its owner's content; the browser isolates them from all other origins.
"""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import Any, NoReturn

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from corral.control.records import CredentialKind
from corral.core.model import Job
from corral.server.auth.callers import SAFE_METHODS, cookie_values
from corral.server.auth.identity import Identity
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.context import ServerContext
from corral.server.http.pages.plain import failure_page
from corral.server.http.problems import Problem
from corral.server.routes.workbenches.jupyter import RELOAD_SECONDS, bridged, not_ready, refusal_of
from corral.server.workbenches.app_access import Site, app_not_ready, running_site, site_of
from corral.server.workbenches.proxy import Unreachable
from corral.server.workbenches.workbench_passes import COOKIE_SECONDS, RENEW_SECONDS, Pass

#: Another name than that of the session cookie: neither is valid in place of the other.
COOKIE = "corral_workbench"
#: How long a browser keeps the cookie: an expired one still names the console's address.
_KEPT_SECONDS = 30 * 86400
#: Headers of every forwarded answer. A workbench may frame its own pages; other origins may neither frame nor load
#: them.
_HEADERS = (
    (b"content-security-policy", b"frame-ancestors 'self'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin-allow-popups"),
    (b"origin-agent-cluster", b"?1"),
)


def enter_path(job_id: str) -> str:
    return f"/workbenches/{job_id}/enter"


class WorkbenchSites(BaseRoute):
    """The first of all routes: handles every request to the origin of a workbench, whatever its path."""

    path = "/workbenches/{job}/site"

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] not in ("http", "websocket"):
            return Match.NONE, {}
        job_id = scope["app"].state.context.origins.job_at(scope)
        return (Match.NONE, {}) if job_id is None else (Match.FULL, {"route": self, "workbench": job_id})

    def url_path_for(self, name: str, /, **path_params: Any) -> NoReturn:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        context: ServerContext = scope["app"].state.context
        job_id: str = scope["workbench"]
        if scope["type"] == "http":
            answer = await _answer(Request(scope, receive), context, job_id)
            await answer(scope, receive, send)
        else:
            await _pass_on_websocket(WebSocket(scope, receive, send), context, job_id)


# ---------------------------------------------------------------- requests


async def _answer(request: Request, context: ServerContext, job_id: str) -> Response:
    site = await site_of(context, job_id)
    path, base = request.scope["path"], site.base
    try:
        if path == enter_path(job_id) and request.method == "GET":
            return _enter(request, context, site)
        if path in ("/", base.rstrip("/")) and path != base and request.method in SAFE_METHODS:
            return RedirectResponse(base, status_code=307)
        if not path.startswith(base):
            raise Problem(404, "Not found", "There is nothing at this address of a workbench.", slug="not-found")
        return await _passed_on(request, context, site)
    except Problem as problem:
        return _refused(request, context, site, problem)
    except SecretUnreadable as error:
        return Problem(503, "Not let in", f"{error}.").response()


async def _passed_on(request: Request, context: ServerContext, site: Site) -> Response:
    is_change = request.method not in SAFE_METHODS
    _check_page(request, context, site.job_id, is_change=is_change)
    if "service-worker" in request.headers:
        # A service worker would answer for this origin in this browser from then on, instead of this server.
        raise Problem(403, "No service workers", "Workbenches cannot register service workers.", slug="forbidden")
    granted, age = _pass_of(request, context, site.job_id)
    job = await running_site(context, await _visitor(context, granted), site, granted.link)
    if is_change:
        context.workbenches.note_use(job.id)
    answer = await _forwarded(request, context, job, site)
    answer.raw_headers += _HEADERS
    if age > RENEW_SECONDS:
        _set_cookie(answer, request, context, granted, site)
    return answer


async def _forwarded(request: Request, context: ServerContext, job: Job, site: Site) -> Response:
    try:
        return await context.jupyter.forward(request, job.attempt_id, site.base)
    except Unreachable as error:
        raise (app_not_ready if site.is_app else not_ready)(job.id, error) from None


def _enter(request: Request, context: ServerContext, site: Site) -> Response:
    entry = context.passes.redeem(request.query_params.get("ticket", ""), site.job_id)
    if entry is None:
        raise Problem(401, "Not let in", "The ticket was used, or is too old: open the workbench again.")
    mark = context.origins.mark(request.scope)
    answer = RedirectResponse(entry.path, status_code=303) if mark is None else _cleared(entry.path, mark)
    answer.headers["Referrer-Policy"] = "no-referrer"
    _set_cookie(answer, request, context, entry.granted, site)
    return answer


def _cleared(path: str, mark: str) -> Response:
    """The port may have belonged to another workbench: its data in this browser is deleted before a page is shown. Only
    visitors with access learn the mark, so another workbench cannot have stored it."""
    nonce = secrets.token_urlsafe(16)
    values = json.dumps([mark, path]).replace("<", "\\u003c")
    page = f"""<!doctype html><meta charset="utf-8"><title>corral</title><script nonce="{nonce}">
const [mark, path] = {values};
(async () => {{
  if (!navigator.cookieEnabled) return document.write("Workbenches need cookies, which this browser does not accept.");
  try {{
    if (localStorage.getItem("corral.mark") !== mark) {{
      for (const found of await indexedDB.databases()) indexedDB.deleteDatabase(found.name);
      sessionStorage.clear();
      localStorage.clear();
      localStorage.setItem("corral.mark", mark);
    }}
  }} finally {{ location.replace(path); }}
}})();
</script>"""
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def _refused(request: Request, context: ServerContext, site: Site, problem: Problem) -> Response:
    """Redirect browsers without a pass to the console; a page that is not ready yet is reloaded."""
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if not wants_page:
        return problem.response()
    console = _console_of(request, context, site.job_id)
    if problem.status == 401:
        is_inside = request.scope["path"].startswith(site.base) and request.scope["path"] != enter_path(site.job_id)
        below = request.scope["path"].removeprefix(site.base) if is_inside else ""
        query = request.url.query if is_inside else ""
        return RedirectResponse(f"{console}{site.console_base}{below}{f'?{query}' if query else ''}", status_code=303)
    back = f"{console}/jobs/{site.job_id}" if site.is_app else f"{console}/workbenches"
    page = failure_page(problem.title, problem.detail, back=back, label="To the console")
    answer = HTMLResponse(page, status_code=problem.status, headers=problem.headers)
    if problem.status == 503:
        answer.headers["Refresh"] = RELOAD_SECONDS
    return answer


# ---------------------------------------------------------------- WebSockets


async def _pass_on_websocket(websocket: WebSocket, context: ServerContext, job_id: str) -> None:
    site = await site_of(context, job_id)
    try:
        if not websocket.scope["path"].startswith(site.base):
            raise Problem(404, "Not found", "There is nothing at this address of a workbench.", slug="not-found")
        _check_page(websocket, context, job_id, is_change=True)
        granted, _ = _pass_of(websocket, context, job_id)
        visitor = await _visitor(context, granted)
        found = await running_site(context, visitor, site, granted.link)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())
        return
    until = partial(_lost_access, context, granted, site)
    await bridged(websocket, context, visitor.user, found.id, until, base=site.base)


async def _lost_access(context: ServerContext, granted: Pass, site: Site) -> str:
    """Waits until this visitor has lost access; returns the reason."""

    async def checked() -> None:
        await running_site(context, await _visitor(context, granted), site, granted.link)

    return await refusal_of(checked)


# ---------------------------------------------------------------- visitors


def _check_page(connection: HTTPConnection, context: ServerContext, job_id: str, *, is_change: bool) -> None:
    """Allows only the workbench's own pages and navigation to it. Cookies are not sufficient: a browser also sends them
    with requests of a page at another port of this machine. Raises a 403 problem.
    """
    headers = connection.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_going = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if origin is not None:
        is_own = origin.lower() == context.origins.own_url(job_id, connection.scope, connection.url).lower()
    elif is_change:
        is_own = site == "same-origin"
    else:
        is_own = site in (None, "same-origin", "none") or is_going
    if not is_own:
        raise Problem(403, "From another page", "This comes from a page that is not the workbench's.", slug="forbidden")


def _pass_of(connection: HTTPConnection, context: ServerContext, job_id: str) -> tuple[Pass, float]:
    """The pass in the cookie, and its age. Raises a 401 problem."""
    valid = [found for found in _cookies(connection, context, job_id) if found[1] <= COOKIE_SECONDS]
    if not valid:
        raise Problem(401, "Not let in", "Open the workbench from the console.")
    return min(valid, key=lambda cookie: cookie[1])


async def _visitor(context: ServerContext, granted: Pass) -> Identity:
    """The user of the session that the pass was issued for. Raises a 401 problem."""
    identity = await context.identities.of_hash(granted.session_hash, CredentialKind.SESSION)
    if identity is None or identity.must_change_password:
        raise Problem(401, "Not let in", "The session has ended: sign in at the console again.")
    return identity


def _console_of(connection: HTTPConnection, context: ServerContext, job_id: str) -> str:
    known = [granted.console for granted, _ in _cookies(connection, context, job_id)]
    return known[0] if known else context.origins.console_url(connection.url)


def _cookies(connection: HTTPConnection, context: ServerContext, job_id: str) -> list[tuple[Pass, float]]:
    """The passes in the cookies of this workbench, and their ages. Other pages of this host can set further cookies of
    the same name, so each is checked."""
    values = cookie_values(connection, _cookie_name(context.origins.own_url(job_id, connection.scope, connection.url)))
    return [found for value in values if (found := context.passes.opened(value, job_id)) is not None]


def _cookie_name(own_url: str) -> str:
    """The cookie's name; over HTTPS with the prefix `__Secure-`, so that no page without HTTPS can set
    it."""
    return f"__Secure-{COOKIE}" if own_url.startswith("https:") else COOKIE


def _set_cookie(answer: Response, request: Request, context: ServerContext, granted: Pass, site: Site) -> None:
    own_url = context.origins.own_url(granted.job_id, request.scope, request.url)
    answer.set_cookie(
        _cookie_name(own_url),
        context.passes.sealed(granted),
        max_age=_KEPT_SECONDS,
        path=site.base,
        httponly=True,
        samesite="lax",
        secure=own_url.startswith("https:"),
    )
