"""TCP connections to programs in jobs, carried by WebSockets: one connection each, for programs with tokens."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.websockets import WebSocket, WebSocketDisconnect

from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import JobRecord
from corral.core.model import JobState
from corral.server.auth.callers import bearer_of
from corral.server.auth.identity import Identity
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem
from corral.server.routes.jobs.jobs import own_record
from corral.server.routes.workbenches.jupyter import lost_access
from corral.server.workbenches.job_ports import connect_to, listener_steps
from corral.server.workbenches.workbench_routes import place_of

router = APIRouter(prefix="/api/v1", include_in_schema=False)

_PIECE_BYTES = 1 << 16
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Port = Annotated[int | None, Query(ge=1, le=65_535)]


@router.websocket("/jobs/{job}/tunnel")
async def tunnel(websocket: WebSocket, job: str, port: Port = None) -> None:
    """Bytes to and from a port of the job's node: without `port`, of its app."""
    context: ServerContext = websocket.app.state.context
    try:
        identity = await bearer_of(websocket, context)
        with context.held.held(identity.user):
            await _carried(websocket, context, identity, job, port)
    except Problem as problem:
        await websocket.send_denial_response(problem.response())


async def _carried(
    websocket: WebSocket, context: ServerContext, identity: Identity, job: str, port: int | None
) -> None:
    """Copies data until one end closes the connection. Raises Problem before it is accepted."""
    record = await context.read(_running, identity.caller(), job)
    inside = await _connected(context, identity.user, record, port)
    source = websocket.client.host if websocket.client is not None else ""
    item = f"port {port}" if port is not None else "app"
    context.audit.note(identity.caller(source), "job.tunnel-opened", record.job.id, owner=record.job.user, item=item)
    try:
        await websocket.accept()
    except (RuntimeError, WebSocketDisconnect):
        inside[1].close()
        return
    context.workbenches.note_use(record.job.id)
    tasks = {
        asyncio.create_task(_inward(websocket, inside[1])),
        asyncio.create_task(_outward(websocket, inside[0])),
        asyncio.create_task(lost_access(context, identity, lambda now: context.read(_running, now.caller(), job))),
    }
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        inside[1].close()
    if websocket.client_state.name == "CONNECTED" and websocket.application_state.name == "CONNECTED":
        try:
            await websocket.close()
        except (RuntimeError, WebSocketDisconnect):
            return  # it is closed already


async def _connected(context: ServerContext, user: str, record: JobRecord, port: int | None) -> Streams:
    """Raises Problem."""
    job, spec = record.job, record.spec
    routes = context.workbenches.routes
    try:
        if spec.has_app and port in (None, spec.app_port):
            way = await context.jupyter.opened(job.id)
            if way.tls is None:
                return await asyncio.open_unix_connection(sock=way.connection)
            return await asyncio.open_connection(sock=way.connection, **way.agreeing)
        if port is None:
            raise Problem(422, "Which port?", f"The job {job.name} has no app: name a port.", slug="invalid-request")
        place = await context.inspect(place_of, job.id)
        if place is None or routes.is_elsewhere(place.cluster):
            raise Problem(
                409,
                "On another machine",
                f"The job {job.name} runs on another machine than the server, where only the port of --port is "
                f"reached: submit it with --port {port}.",
                slug="wrong-state",
            )
        files = context.workbenches.files
        owner = await context.steps.do(user, files.owner_of, job.id)
        home = files.home_of(job.id)
        connection = await connect_to(port, lambda: context.steps.step(user, listener_steps(port, home, owner)))
        return await asyncio.open_connection(sock=connection)
    except OSError as error:
        raise Problem(
            503, "Not ready", f"Nothing of job {job.name} answers there: {error}.", slug="not-ready"
        ) from None


def _running(tables: Transaction, caller: Caller, ref: str) -> JobRecord:
    record = own_record(tables, caller, ref)
    if record.job.state is not JobState.RUNNING:
        raise Problem(409, "Not running", f"The job {record.job.name} is {record.job.state}.", slug="wrong-state")
    return record


async def _inward(websocket: WebSocket, writer: asyncio.StreamWriter) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        data = message.get("bytes")
        if data is None:
            return  # only bytes are carried
        try:
            writer.write(data)
            await writer.drain()
        except OSError:
            return


async def _outward(websocket: WebSocket, reader: asyncio.StreamReader) -> None:
    while True:
        try:
            piece = await reader.read(_PIECE_BYTES)
            if not piece:
                return
            await websocket.send_bytes(piece)
        except (OSError, RuntimeError, WebSocketDisconnect):
            return
