"""Access to the Jupyter of a workbench from the console's address: for its owner and for operators only.

Its pages run its owner's code, so a browser never gets them at this address: the browser gets a ticket for the
workbench's own origin (`server/workbenches/workbench_site.py`). Requests of programs have a token, which no page can
use, and are forwarded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.exceptions import InvalidStatus

from corral.control.errors import Refusal
from corral.control.ports import StoreUnavailable
from corral.control.records import CredentialKind
from corral.control.workbenches.workbenches import base_url
from corral.core.model import Job, JobKind, JobState
from corral.server.auth.callers import SAFE_METHODS, Context, bearer_of, identity_of
from corral.server.auth.identity import Identity
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem
from corral.server.routes.jobs.logs import job_now
from corral.server.routes.people.sign_in import answer_of
from corral.server.workbenches.proxy import Unreachable, bridge, response_headers, target_of
from corral.server.workbenches.workbench_passes import Entry, Pass

router = APIRouter(include_in_schema=False)

#: How often the rights of the user who opened a WebSocket are checked again.
RECHECK_SECONDS = 10.0
RELOAD_SECONDS = "3"
METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
#: If a browser shows such an answer nevertheless, the page has an opaque origin and no scripts.
NO_PAGE = ((b"content-security-policy", b"sandbox"), (b"cross-origin-resource-policy", b"same-origin"))


@router.get("/workbenches/{job}/jupyter")
async def to_jupyter(job: str) -> Response:
    return RedirectResponse(base_url(job), status_code=307)


@router.api_route("/workbenches/{job}/jupyter/{path:path}", methods=METHODS)
async def pass_on(job: str, path: str, request: Request, context: Context) -> Response:
    try:
        if "authorization" not in request.headers:
            return await _sent_there(request, context, job)
        identity = await bearer_of(request, context)
        found = await running_workbench(context, identity, job)
        if request.method not in SAFE_METHODS:
            context.workbenches.note_use(found.id)
        answer = await _answer(request, context, found)
        answer.raw_headers += NO_PAGE
        return answer
    except Problem as problem:
        return refused(request, problem)


@router.websocket("/workbenches/{job}/jupyter/{path:path}")
async def pass_on_websocket(websocket: WebSocket, job: str, path: str) -> None:
    context: ServerContext = websocket.app.state.context
    try:
        identity = await bearer_of(websocket, context)
        found = await running_workbench(context, identity, job)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())
        return
    until = partial(lost_access, context, identity, lambda now: running_workbench(context, now, job))
    await bridged(websocket, context, identity.user, found.id, until)


async def bridged(
    websocket: WebSocket,
    context: ServerContext,
    user: str,
    job_id: str,
    until: Callable[[], Awaitable[str]],
    *,
    base: str | None = None,
    target: bytes | None = None,
) -> None:
    """Forward a WebSocket to a workbench or app until one end closes it, or `until` returns a reason."""
    try:
        with context.held.held(user):
            await _bridged(websocket, context, job_id, until, base, target)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())


async def _bridged(
    websocket: WebSocket,
    context: ServerContext,
    job_id: str,
    until: Callable[[], Awaitable[str]],
    base: str | None,
    target: bytes | None,
) -> None:
    """Raises Problem before it is accepted."""
    try:
        upstream = await context.jupyter.open(websocket, job_id, target)
    except Unreachable as error:
        raise not_ready(job_id, error) from None
    except InvalidStatus as refused:
        answer = refused.response
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.raw_items()]
        passed = Response(answer.body, status_code=answer.status_code)
        passed.raw_headers = response_headers(headers, base or base_url(job_id))
        await websocket.send_denial_response(passed)
        return
    try:
        await websocket.accept(subprotocol=upstream.subprotocol)
    except (RuntimeError, WebSocketDisconnect):
        await upstream.close()
        return
    await bridge(websocket, upstream, until)


async def running_workbench(context: ServerContext, identity: Identity, job_id: str) -> Job:
    """The workbench, if this visitor may use it and it runs. Raises Problem."""
    job = await job_now(context, job_id) if job_id.startswith("j-") else None
    if job is None or job.kind is not JobKind.WORKBENCH or job.user != identity.user:
        check_operator(context, identity, job_id)
    if job is None or job.kind is not JobKind.WORKBENCH:
        raise Problem(404, "Not found", f"There is no workbench {job_id}.", slug="not-found")
    if job.state is JobState.STARTING:
        raise not_ready(job_id)
    if job.state is not JobState.RUNNING:
        start = "" if job.state.is_active else f" Start it: corral workbench start {job.name}"
        raise Problem(
            409,
            "Not running",
            f"The workbench {job.name} is {job.state}.{start}",
            slug="wrong-state",
            numbers={"state": job.state.value},
        )
    if job.user != identity.user:
        context.audit.note(identity.caller(), "workbench.opened", job.id, owner=job.user)
    return job


def not_ready(job_id: str, error: Unreachable | None = None) -> Problem:
    cause = f" ({error})" if error is not None and str(error) else ""
    return Problem(
        503,
        "Not ready yet",
        f"The Jupyter of workbench {job_id} does not answer: it is starting, or the workbench offers none{cause}.",
        slug="not-ready",
        headers={"Retry-After": RELOAD_SECONDS},
    )


async def _sent_there(request: Request, context: ServerContext, job_id: str) -> Response:
    """Redirect a signed-in browser to the workbench's own origin, with a ticket."""
    identity = await visitor_of(request, context)
    found = await running_workbench(context, identity, job_id)
    return await sent_with_ticket(request, context, found.id, identity, target_of(request).decode("latin-1"))


async def visitor_of(request: Request, context: ServerContext) -> Identity:
    """The user of a browser that opens a page in a tab. Raises Problem."""
    identity = await identity_of(request, context)
    is_going = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
    is_framed = request.headers.get("sec-fetch-dest", "document") != "document"
    if request.method not in ("GET", "HEAD") or not is_going or is_framed:
        raise Problem(
            403, "Elsewhere", "Pages of workbenches have an address of their own: open it in a tab.", slug="forbidden"
        )
    return identity


async def sent_with_ticket(
    request: Request, context: ServerContext, job_id: str, identity: Identity, path: str, *, link: str = ""
) -> Response:
    """Redirect to a path of the origin of a workbench or app, with a ticket."""
    console = context.settings.server.public_url or f"{request.url.scheme}://{request.url.netloc}"
    granted = Pass(job_id=job_id, session_hash=identity.secret_hash, console=console, link=link)
    url = await context.origins.url_of(job_id, request.url)
    ticket = context.passes.issue(Entry(granted=granted, path=local_path(path)))
    answer = RedirectResponse(f"{url}/workbenches/{quote(job_id)}/enter?ticket={ticket}", status_code=303)
    answer.headers["Referrer-Policy"] = "no-referrer"
    return answer


def local_path(path: str) -> str:
    """The path below its origin: browsers take `//host` and `/\\host` for the address of another host."""
    return "/" + path.lstrip("/\\")


async def _answer(request: Request, context: ServerContext, job: Job) -> Response:
    try:
        return await context.jupyter.forward(request, job.attempt_id, base_url(job.id))
    except Unreachable as error:
        raise not_ready(job.id, error) from None


def check_operator(context: ServerContext, identity: Identity, job_id: str, what: str = "workbench") -> None:
    """Raises a 403 problem unless the caller is an operator who may open another user's workbench."""
    caller = identity.caller()
    if not caller.is_operator:
        raise Problem(403, "Not allowed", f"The {what} {job_id} is not yours.", slug="forbidden")
    if identity.kind is CredentialKind.SESSION and not context.settings.workbench.operators_open:
        raise Problem(
            403,
            "Not in a browser",
            "Others' workbenches are opened with a token, or in a browser where workbench.operators_open is switched "
            "on in the configuration.",
            slug="forbidden",
        )


def refused(request: Request, problem: Problem) -> Response:
    """Redirect users who are not signed in to the sign-in page; a page that is not ready yet is reloaded."""
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if wants_page and problem.status == 401 and "authorization" not in request.headers:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/signin?{urlencode({'next': path})}", status_code=303)
    answer = answer_of(request, problem)
    answer.headers.update(problem.headers)
    if wants_page and problem.status == 503:
        answer.headers["Refresh"] = RELOAD_SECONDS
    return answer


async def lost_access(
    context: ServerContext, identity: Identity, check: Callable[[Identity], Awaitable[object]]
) -> str:
    """Waits until this visitor has lost access, because of the credential or because `check` refuses the present
    rights; returns the reason."""

    async def checked() -> None:
        now = await context.identities.current(identity)
        if now is None:
            raise Problem(401, "Not let in", "The credential is not valid any more.")
        await check(now)

    return await refusal_of(checked)


async def refusal_of(check: Callable[[], Awaitable[object]]) -> str:
    """Waits until `check` refuses. A store that is away for a moment ends nothing."""
    while True:
        await asyncio.sleep(RECHECK_SECONDS)
        try:
            await check()
        except StoreUnavailable:
            continue
        except (Problem, Refusal):
            return "access was lost"
