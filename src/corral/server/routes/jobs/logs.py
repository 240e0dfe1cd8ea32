"""A job's output: as plain text, live as server-sent events, searched, or as files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from corral.control.errors import NotFound
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.core.model import Job, attempt_id
from corral.server.auth.callers import AnyCaller, Context, SignedIn, address_of
from corral.server.auth.identity import Identity
from corral.server.http import archives, downloads
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, read_cursor, write_cursor
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.jobs.log_files import log_download, logs_download
from corral.server.jobs.log_lines import LogFollower, LogPlace, place_after, text_pieces
from corral.server.jobs.log_search import Position, Question, search
from corral.server.routes.jobs.jobs import own_record
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.files import LogMatchView, match_view
from corral.server.workbenches.held_connections import HeldStream

router = resource_router("/jobs", "jobs")

MAX_TAIL_LINES = 1_000_000
#: A number, or `all`.
OneOrAll = Annotated[str | None, Query(pattern=r"^(all|\d{1,9})$")]


@router.get(
    "/{job}/logs",
    operation_id="read_logs",
    response_class=Response,
    responses={
        200: {
            "description": "Text; with `follow=true` events `log` and finally `end`.",
            "content": {"text/plain": {}, "text/event-stream": {}},
        },
        **problems(404, 429),
    },
)
async def read_logs(
    job: str,
    request: Request,
    identity: SignedIn,
    context: Context,
    attempt: Annotated[int | None, Query(ge=1, description="Default: the latest attempt.")] = None,
    rank: Annotated[int, Query(ge=0, description="Node of a gang.")] = 0,
    tail: Annotated[int | None, Query(ge=0, le=MAX_TAIL_LINES, description="Only the last lines, so many.")] = None,
    follow: bool = False,
) -> Response:
    """The job's output so far; with `follow`, as it is written."""
    caller = identity.caller(address_of(request))
    found = await _read_by(caller, context, job)
    _check_attempt(found, attempt)
    _check_rank(found, rank)
    after = place_after(request.headers.get("last-event-id", ""))
    if after is not None and not 1 <= after[0] <= found.attempt:
        after = None
    place = LogPlace(job_id=found.id, rank=rank, attempt=attempt, tail=tail, after=after)
    if follow or "text/event-stream" in request.headers.get("accept", ""):
        follower = LogFollower(
            context.logs,
            place,
            job_now=lambda: job_now(context, found.id),
            is_closed=lambda: context.feed.is_closed,
            run=partial(context.steps.step, caller.name),
        )
        return HeldStream(_while_readable(follower.events(), context, identity, found), context.held, caller.name)
    if not found.attempt:
        return Response("", media_type="text/plain; charset=utf-8")
    text = text_pieces(context.logs, attempt_id(found.id, attempt or found.attempt), place)
    return StreamingResponse(context.readers.pieces(caller.name, text), media_type="text/plain; charset=utf-8")


@router.get("/{job}/logs/search", operation_id="search_logs", responses=problems(404, 503))
async def search_logs(
    job: str,
    request: Request,
    caller: AnyCaller,
    context: Context,
    q: Annotated[str, Query(min_length=1, max_length=1000, description="The text to search for.")],
    attempt: OneOrAll = None,
    rank: OneOrAll = None,
    regex: Annotated[bool, Query(description="`q` is a Python regular expression.")] = False,
    ignore_case: bool = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[LogMatchView]:
    """The lines that contain a text or match a pattern; default: of the latest attempt and the first rank.

    A page also ends when the request has read its limit of data: the page may then have few matches or none, and still
    has a `next_cursor`.
    """
    found = await _read_by(caller, context, job)
    logs = _logs(found, attempt, rank)
    if not logs:
        return ListView(items=[])
    question = Question(text=q, is_pattern=regex, ignore_case=ignore_case)
    start = _start(cursor, logs)
    steps = search(context.logs, found.id, logs, question, start, limit)
    answer = await context.readers.run(caller.name, steps, request)
    following = None
    if answer.following is not None:
        place = answer.following
        following = write_cursor((place.attempt, place.rank, place.offset, place.line))
    items = [match_view(match, place.attempt, place.rank) for place, match in answer.matches]
    return ListView(items=items, next_cursor=following)


@router.get(
    "/{job}/logs/download",
    operation_id="download_logs",
    response_class=Response,
    responses={
        200: {
            "description": "The log as a file; several as .tar.gz.",
            "content": {downloads.OCTETS: {}, archives.MEDIA_TYPE: {}},
        },
        **problems(404),
    },
)
async def download_logs(
    job: str, caller: AnyCaller, context: Context, attempt: OneOrAll = None, rank: OneOrAll = None
) -> downloads.Download:
    """The job's output so far, as a file; `all` means every attempt or rank."""
    found = await _read_by(caller, context, job)
    logs = _logs(found, attempt, rank)
    through = partial(context.readers.pieces, caller.name)
    if "all" in (attempt, rank):
        return logs_download(context.logs, found, logs, through)
    return log_download(context.logs, found, *(logs[0] if logs else (0, 0)), through=through)


async def _read_by(caller: Caller, context: ServerContext, ref: str) -> Job:
    """The job whose output is read; reads by other users than the owner are recorded in the audit log."""
    job = (await context.read(own_record, caller, ref)).job
    context.audit.read(caller, "log.read", job.id, owner=job.user)
    return job


async def _while_readable(
    events: AsyncIterator[str], context: ServerContext, identity: Identity, job: Job
) -> AsyncIterator[str]:
    """The events until their reader has lost the account, the token, or the role of an operator."""
    watched = context.identities.watched(identity)
    async for text in events:
        now = await watched.current()
        if now is None or (now.user != job.user and not now.caller().is_operator):
            return
        yield text


def _logs(job: Job, attempt: str | None, rank: str | None) -> list[tuple[int, int]]:
    """Attempt and rank of every requested log; none before the first attempt."""
    if attempt not in (None, "all"):
        _check_attempt(job, int(attempt))
    if rank not in (None, "all"):
        _check_rank(job, int(rank))
    attempts = range(1, job.attempt + 1) if attempt == "all" else [int(attempt or job.attempt)]
    ranks = range(job.request.nodes) if rank == "all" else [int(rank or 0)]
    return [(number, place) for number in attempts for place in ranks if number]


def _start(cursor: str | None, logs: list[tuple[int, int]]) -> Position:
    if cursor is None:
        return Position(attempt=logs[0][0], rank=logs[0][1])
    key = read_cursor(cursor)
    whole = len(key) == 4 and all(type(part) is int and 0 <= part < 2**63 for part in key)
    if not whole or (key[0], key[1]) not in logs:
        raise invalid_field("cursor", "is not a cursor of this list")
    return Position(attempt=key[0], rank=key[1], offset=key[2], line=key[3])


def _check_attempt(job: Job, attempt: int | None) -> None:
    if attempt is not None and not 1 <= attempt <= job.attempt:
        raise NotFound(f"job {job.id} has no attempt {attempt}", field="attempt", attempts=job.attempt)


def _check_rank(job: Job, rank: int) -> None:
    if rank >= job.request.nodes:
        raise NotFound(f"job {job.id} has no rank {rank}", field="rank", nodes=job.request.nodes)


async def job_now(context: ServerContext, job_id: str) -> Job | None:
    """A live job from memory, otherwise from the store."""
    live = await context.inspect(_live_job, job_id)
    if live is not None:
        return live
    record = await context.read(lambda tables: tables.jobs.get(job_id))
    return record.job if record is not None else None


def _live_job(state: State, job_id: str) -> Job | None:
    return state.snapshot.jobs.get(job_id)
