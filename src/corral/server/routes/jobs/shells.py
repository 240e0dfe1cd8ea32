"""A command in a running job, over a WebSocket: for programs with a token.

Bytes of input and output are binary messages: a channel (0 input, 1 output, 2 errors) and the data. Everything else is
a JSON object as text: the caller sends `{"resize": [columns, rows]}` and `{"end": true}` for the end of its input; the
server ends with `{"exit_code": number or null}`, or `{"error": text}`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from corral.control.errors import Refusal
from corral.control.ports import EngineUnavailable, HasShells, LaunchRefused, ShellStream, StoreUnavailable
from corral.control.workbenches.job_shells import ShellPlace, open_shell
from corral.server.auth.callers import bearer_of
from corral.server.auth.identity import Identity
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem, invalid_field, refused, store_unavailable
from corral.server.http.strict_route import PREFIX
from corral.server.routes.jobs.jobs import own_record
from corral.server.routes.workbenches.jupyter import lost_access

router = APIRouter(include_in_schema=False)

INPUT = 0
MAX_COMMAND_CHARS = 100_000
MAX_SIZE = 10_000


@router.websocket(f"{PREFIX}/jobs/{{job}}/shell")
async def run_in_job(websocket: WebSocket, job: str) -> None:
    """Query: `command` (once for each word; none means the shell of the image), `rank`, `tty=true`, `stdin=true`."""
    context: ServerContext = websocket.app.state.context
    try:
        identity = await bearer_of(websocket, context)
        with context.held.held(identity.user):
            stream = await _opened(websocket, context, identity.caller(_address(websocket)), job)
            await _carried(websocket, context, identity, job, stream)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())


async def _carried(
    websocket: WebSocket, context: ServerContext, identity: Identity, job: str, stream: ShellStream
) -> None:
    until = partial(lost_access, context, identity, lambda now: context.read(own_record, now.caller(), job))
    try:
        await websocket.accept()
        await _bridge(websocket, stream, until)
    except (RuntimeError, WebSocketDisconnect):
        return  # the caller is gone
    finally:
        await stream.close()


async def _opened(websocket: WebSocket, context: ServerContext, caller: Any, job: str) -> ShellStream:
    """Raises Problem."""
    query = websocket.query_params
    command, rank = query.getlist("command"), query.get("rank", "0")
    if not rank.isdecimal() or len(rank) > 6:
        raise invalid_field("rank", f"{rank[:20]!r} is not a number")
    if sum(map(len, command)) > MAX_COMMAND_CHARS or any("\0" in word for word in command):
        raise Problem(
            422, "The request is not valid", "command: it is too long, or has a null byte", slug="invalid-request"
        )
    try:
        place = await context.execute(open_shell, caller, job, rank=int(rank), command=command)
        engine = context.controller.engines.get(place.cluster)
        if not isinstance(engine, HasShells):
            raise _no_shells(place)
        return await engine.open_shell(
            place.attempt_id,
            place.rank,
            command,
            has_terminal=query.get("tty") == "true",
            has_input=query.get("stdin") == "true",
        )
    except Refusal as refusal:
        raise refused(refusal) from None
    except LaunchRefused as refusal:
        raise Problem(
            409, "Not possible", f"{str(refusal)[:1].upper()}{str(refusal)[1:]}.", slug="wrong-state"
        ) from None
    except EngineUnavailable as error:
        raise Problem(503, "The cluster does not answer", str(error), headers={"Retry-After": "5"}) from None
    except StoreUnavailable:
        raise store_unavailable() from None


def _no_shells(place: ShellPlace) -> Problem:
    return Problem(
        409,
        "Not possible there",
        f"Cluster {place.cluster}, where {place.job_id} runs, opens no shells in jobs: create a workbench with SSH "
        "there (corral workbench create NAME --ssh).",
        slug="not-supported",
    )


def _address(websocket: WebSocket) -> str:
    return websocket.client.host if websocket.client is not None else ""


async def _bridge(websocket: WebSocket, stream: ShellStream, until: Callable[[], Awaitable[str]]) -> None:
    """Copies data both ways until the command ends, the caller leaves, or `until` returns a reason."""
    tasks = [
        asyncio.create_task(_to_caller(websocket, stream)),
        asyncio.create_task(_to_command(websocket, stream)),
        asyncio.create_task(_closed_for(until)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        last = next(task for task in tasks if task.done()).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if last:
        await websocket.send_text(json.dumps(last))
        await websocket.close()


async def _closed_for(until: Callable[[], Awaitable[str]]) -> dict[str, Any]:
    return {"error": await until()}


async def _to_caller(websocket: WebSocket, stream: ShellStream) -> dict[str, Any]:
    """The last message."""
    try:
        async for channel, data in stream.output():
            await websocket.send_bytes(bytes([channel]) + data)
    except EngineUnavailable as error:
        return {"error": str(error)}
    return {"exit_code": stream.exit_code}


async def _to_command(websocket: WebSocket, stream: ShellStream) -> dict[str, Any]:
    """Sends the caller's messages to the command until the caller leaves: then there is no last message."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return {}
        if (data := message.get("bytes")) is not None:
            if data[:1] == bytes([INPUT]):
                await stream.send(data[1:])
            continue
        await _obey(str(message.get("text") or ""), stream)


async def _obey(text: str, stream: ShellStream) -> None:
    """Applies a control message. Invalid ones are ignored: they concern the caller's own terminal only."""
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError):
        return
    match asked:
        case {"end": True}:
            await stream.end_input()
        case {"resize": [columns, rows]} if _is_size(columns) and _is_size(rows):
            await stream.resize(columns, rows)


def _is_size(value: Any) -> bool:
    # A boolean is an integer, too.
    return type(value) is int and 0 < value <= MAX_SIZE
