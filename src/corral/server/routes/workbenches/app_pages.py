"""Access to the app of a job from the console's address: browsers get a ticket for the app's own origin, programs with
tokens are forwarded. See `jupyter.py`, which does the same for workbenches."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.websockets import WebSocket

from corral.control.workbenches.apps import address_of
from corral.server.auth.callers import SAFE_METHODS, Context, bearer_of
from corral.server.auth.secrets import secret_hash
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem
from corral.server.routes.workbenches.jupyter import (
    METHODS,
    NO_PAGE,
    bridged,
    lost_access,
    refused,
    sent_with_ticket,
    visitor_of,
)
from corral.server.workbenches.app_access import app_not_ready, running_app
from corral.server.workbenches.proxy import Unreachable, target_of

router = APIRouter(include_in_schema=False)

#: The query parameter with the secret of a link.
LINK = "corral_link"


@router.get("/apps/{job}")
async def to_app(job: str) -> Response:
    return RedirectResponse(address_of(job), status_code=307)


@router.api_route("/apps/{job}/{path:path}", methods=METHODS)
async def pass_on(job: str, path: str, request: Request, context: Context) -> Response:
    try:
        if "authorization" not in request.headers:
            return await _sent_there(request, context, job)
        identity = await bearer_of(request, context)
        found = await running_app(context, identity, job)
        if request.method not in SAFE_METHODS:
            context.workbenches.note_use(found.id)
        try:
            answer = await context.jupyter.forward(request, found.attempt_id, "/", _target(request, job))
        except Unreachable as error:
            raise app_not_ready(job, error) from None
        answer.raw_headers += NO_PAGE
        return answer
    except Problem as problem:
        return refused(request, problem)


@router.websocket("/apps/{job}/{path:path}")
async def pass_on_websocket(websocket: WebSocket, job: str, path: str) -> None:
    context: ServerContext = websocket.app.state.context
    try:
        identity = await bearer_of(websocket, context)
        found = await running_app(context, identity, job)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())
        return
    target = _target(websocket, job)
    until = partial(lost_access, context, identity, lambda now: running_app(context, now, job))
    await bridged(websocket, context, identity.user, found.id, until, base="/", target=target)


async def _sent_there(request: Request, context: ServerContext, job_id: str) -> Response:
    """Redirect a signed-in browser to the app's own origin, with a ticket. The secret of a link goes no further."""
    identity = await visitor_of(request, context)
    given = request.query_params.get(LINK, "")
    link = secret_hash(given) if given else ""
    found = await running_app(context, identity, job_id, link)
    path = "/" if given else _target(request, job_id).decode("latin-1")
    return await sent_with_ticket(request, context, found.id, identity, path, link=link)


def _target(connection: HTTPConnection, job_id: str) -> bytes:
    """Path and query as the app sees them: without the prefix of this address."""
    return target_of(connection).removeprefix(address_of(job_id).rstrip("/").encode("latin-1", "replace")) or b"/"
