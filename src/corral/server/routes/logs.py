"""A job's output: as plain text, or live as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from corral.control.errors import NotFound
from corral.control.state import State
from corral.core.model import Job, attempt_id
from corral.server.auth.callers import AnyCaller, Context
from corral.server.context import ServerContext
from corral.server.loglines import LogFollower, LogPlace, place_after, read_text
from corral.server.routes.jobs import own_record
from corral.server.routing import problems, resource_router

router = resource_router("/jobs", "jobs")

MAX_TAIL_LINES = 1_000_000


@router.get(
    "/{job}/logs",
    operation_id="read_logs",
    response_class=Response,
    responses={
        200: {
            "description": "Text, or with `follow=true` events `log` and a last `end`.",
            "content": {"text/plain": {}, "text/event-stream": {}},
        },
        **problems(404),
    },
)
async def read_logs(
    job: str,
    request: Request,
    caller: AnyCaller,
    context: Context,
    attempt: Annotated[int | None, Query(ge=1, description="The latest one if left out.")] = None,
    rank: Annotated[int, Query(ge=0, description="Which node of a gang.")] = 0,
    tail: Annotated[int | None, Query(ge=0, le=MAX_TAIL_LINES, description="Only so many last lines.")] = None,
    follow: bool = False,
) -> Response:
    """What the job has written, so far or as it comes."""
    found = (await context.read(own_record, caller, job)).job
    if attempt is not None and attempt > found.attempt:
        raise NotFound(f"job {found.id} has no attempt {attempt}", field="attempt", attempts=found.attempt)
    if rank >= found.request.nodes:
        raise NotFound(f"job {found.id} has no rank {rank}", field="rank", nodes=found.request.nodes)
    after = place_after(request.headers.get("last-event-id", ""))
    if after is not None and not 1 <= after[0] <= found.attempt:
        after = None
    place = LogPlace(job_id=found.id, rank=rank, attempt=attempt, tail=tail, after=after)
    if follow or "text/event-stream" in request.headers.get("accept", ""):
        follower = LogFollower(
            context.engine, place, job_now=lambda: job_now(context, found.id), is_closed=lambda: context.feed.is_closed
        )
        return StreamingResponse(follower.events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    if not found.attempt:
        return Response("", media_type="text/plain; charset=utf-8")
    text = read_text(context.engine, attempt_id(found.id, attempt or found.attempt), place)
    return StreamingResponse(text, media_type="text/plain; charset=utf-8")


async def job_now(context: ServerContext, job_id: str) -> Job | None:
    """From memory while it is live, else from the store."""
    live = await context.inspect(_live_job, job_id)
    if live is not None:
        return live
    record = await context.read(lambda tables: tables.jobs.get(job_id))
    return record.job if record is not None else None


def _live_job(state: State, job_id: str) -> Job | None:
    return state.snapshot.jobs.get(job_id)
