"""The door to the Jupyter of a workbench: its owner, and nobody else but operators.

An operator who opens somebody's workbench in a browser would let that somebody's program act in the operator's name,
since its pages come from this server's own address. So that needs `workbench.operators_open`; with a token, which no
page can use, it does not.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.exceptions import InvalidStatus

from corral.control.records import CredentialKind
from corral.control.workbenches import base_url
from corral.core.model import Job, JobKind, JobState
from corral.server.auth.callers import SAFE_METHODS, Context, visitor_of
from corral.server.auth.identity import Identity
from corral.server.context import ServerContext
from corral.server.problems import Problem
from corral.server.proxy import Unreachable, bridge, response_headers
from corral.server.routes.logs import job_now
from corral.server.routes.signin import answer_of

router = APIRouter(include_in_schema=False)

#: How often it is asked whether who opened a WebSocket would still be let in.
LET_IN_SECONDS = 10.0
_METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
_RELOAD_SECONDS = "3"


@router.get("/workbenches/{job}/jupyter")
async def to_jupyter(job: str) -> Response:
    return RedirectResponse(base_url(job), status_code=307)


@router.api_route("/workbenches/{job}/jupyter/{path:path}", methods=_METHODS)
async def pass_on(job: str, path: str, request: Request, context: Context) -> Response:
    try:
        is_change = request.method not in SAFE_METHODS
        identity = await visitor_of(request, context, is_change=is_change)
        found = await _running(context, identity, job)
        if is_change:
            context.workbenches.note_use(found.id)
        return await _answer(request, context, found)
    except Problem as problem:
        return _refused(request, problem)


@router.websocket("/workbenches/{job}/jupyter/{path:path}")
async def pass_on_websocket(websocket: WebSocket, job: str, path: str) -> None:
    context: ServerContext = websocket.app.state.context
    try:
        identity = await visitor_of(websocket, context, is_change=True)
        found = await _running(context, identity, job)
        upstream = await context.jupyter.open(websocket, found.id)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())
        return
    except Unreachable as error:
        await websocket.send_denial_response(_not_ready(job, error).response())
        return
    except InvalidStatus as refused:
        answer = refused.response
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.raw_items()]
        passed = Response(answer.body, status_code=answer.status_code)
        passed.raw_headers = response_headers(headers, base_url(job))
        await websocket.send_denial_response(passed)
        return
    try:
        await websocket.accept(subprotocol=upstream.subprotocol)
    except (RuntimeError, WebSocketDisconnect):
        await upstream.close()
        return
    await bridge(websocket, upstream, lambda: _let_in_no_more(context, identity))


async def _answer(request: Request, context: ServerContext, job: Job) -> Response:
    try:
        return await context.jupyter.forward(request, job.attempt_id, base_url(job.id))
    except Unreachable as error:
        raise _not_ready(job.id, error) from None


async def _running(context: ServerContext, identity: Identity, job_id: str) -> Job:
    """The workbench, if this visitor may use it and it runs."""
    job = await job_now(context, job_id) if job_id.startswith("j-") else None
    if job is None or job.kind is not JobKind.WORKBENCH or job.user != identity.user:
        _check_operator(context, identity, job_id)
    if job is None or job.kind is not JobKind.WORKBENCH:
        raise Problem(404, "Not found", f"There is no workbench {job_id}.", slug="not-found")
    if job.state is JobState.STARTING:
        raise _not_ready(job_id)
    if job.state is not JobState.RUNNING:
        start = "" if job.state.is_active else f" Start it: corral workbench start {job.name}"
        raise Problem(
            409,
            "Not running",
            f"The workbench {job.name} is {job.state}.{start}",
            slug="wrong-state",
            numbers={"state": job.state.value},
        )
    return job


def _check_operator(context: ServerContext, identity: Identity, job_id: str) -> None:
    """Of others' workbenches only operators learn whether they are there."""
    caller = identity.caller()
    if not caller.is_operator:
        raise Problem(403, "Not allowed", f"The workbench {job_id} is not yours.", slug="forbidden")
    if identity.kind is CredentialKind.SESSION and not context.settings.workbench.operators_open:
        raise Problem(
            403,
            "Not in a browser",
            "In a browser its owner's code would run in your name, with everything that operators may do. Use a token, "
            "or switch workbench.operators_open on in the configuration.",
            slug="forbidden",
        )


def _not_ready(job_id: str, error: Unreachable | None = None) -> Problem:
    cause = f" ({error})" if error is not None and str(error) else ""
    return Problem(
        503,
        "Not ready yet",
        f"The Jupyter of workbench {job_id} does not answer: it is starting, or the workbench offers none{cause}.",
        slug="not-ready",
        headers={"Retry-After": _RELOAD_SECONDS},
    )


def _refused(request: Request, problem: Problem) -> Response:
    """People who are not signed in are sent to do so; a page that is not ready yet is loaded again."""
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if wants_page and problem.status == 401:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/signin?{urlencode({'next': path})}", status_code=303)
    answer = answer_of(request, problem)
    answer.headers.update(problem.headers)
    if wants_page and problem.status == 503:
        answer.headers["Refresh"] = _RELOAD_SECONDS
    return answer


async def _let_in_no_more(context: ServerContext, identity: Identity) -> str:
    """Returns once this visitor would not be let in any more."""
    while True:
        await asyncio.sleep(LET_IN_SECONDS)
        now = await context.identities.current(identity)
        if now is None:
            return "signed out"
