"""The audit log: page by page, and live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Depends, Header, Query
from starlette.responses import StreamingResponse

from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import EventFilter, EventRecord
from corral.server.auth.callers import AnyCaller, Context, Operator, SignedIn
from corral.server.auth.identity import Identity
from corral.server.events.event_export import MEDIA_TYPES, event_file
from corral.server.events.stream import PING, sse
from corral.server.events.visibility import may_see_event
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Filter, Limit
from corral.server.http.problems import invalid_field
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView, rfc3339
from corral.server.schemas.fleet.nodes import EventView, event_view

router = resource_router("", "events")

#: For those who see only some events: how many times one page may go back to the store.
MAX_ROUNDS = 50


async def where_of(
    actor: Filter = None,
    action: Filter = None,
    subject: Filter = None,
    since: Filter = None,
    until: Filter = None,
    q: Annotated[
        str | None, Query(min_length=1, max_length=253, description="Text in who, what, about what, or the detail.")
    ] = None,
) -> EventFilter:
    return EventFilter(
        actor=actor,
        action=action,
        subject=subject,
        since=time_of("since", since),
        until=time_of("until", until),
        text=q,
    )


Where = Annotated[EventFilter, Depends(where_of)]


@router.get("/events", operation_id="list_events", responses=problems())
async def list_events(
    caller: AnyCaller, context: Context, where: Where, limit: Limit = 50, cursor: Cursor = None
) -> ListView[EventView]:
    """What happened, newest first. Scientists see what concerns them and the fleet."""
    try:
        return await context.read(_visible_page, caller, where, cursor, limit)
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None


@router.get(
    "/events/export",
    operation_id="export_events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"text/csv": {"schema": {"type": "string"}}, "application/x-ndjson": {}},
            "description": "The whole log, newest first.",
        },
        **problems(403),
    },
)
async def export_events(
    caller: Operator, context: Context, where: Where, format: Literal["csv", "jsonl"] = "csv"
) -> StreamingResponse:
    """Everything that matches, as a file: CSV for spreadsheets, or one JSON object per line."""
    headers = {"Content-Disposition": f'attachment; filename="corral-events.{format}"'}
    return StreamingResponse(event_file(context, where, format), media_type=MEDIA_TYPES[format], headers=headers)


@router.get(
    "/stream",
    operation_id="stream_events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events as they are committed."},
        **problems(),
    },
)
async def stream_events(
    identity: SignedIn,
    caller: AnyCaller,
    context: Context,
    last_event_id: Annotated[int | None, Query(ge=0, description="Everything after this event.")] = None,
    last_event_id_header: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> StreamingResponse:
    """Events as they happen; after a break everything that was missed, in order and once.

    Beside the events there are notes without an id: `hello` comes first, with the server's version and start,
    `readings` whenever there is something new that was measured, and `estimates` when starts were estimated anew.
    Operators also hear `simulation.progress` while a what-if question is answered, and `shadow.differed` when the
    shadow policy would have decided otherwise.
    """
    after = await _start(context, last_event_id_header, last_event_id)
    return StreamingResponse(
        _events(context, identity, after), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def _start(context: ServerContext, header: str | None, query: int | None) -> int:
    if header and not (header.isascii() and header.isdigit() and len(header) < 19):
        raise invalid_field("Last-Event-ID", f"must be the id of an event, got {header[:40]!r}")
    given = int(header) if header else query
    newest = await context.read(lambda tables: tables.events.last_id())
    context.feed.begin_at(newest)
    # An id from another life of the store would wait for ever.
    return newest if given is None else min(given, newest)


async def _events(context: ServerContext, identity: Identity, after: int) -> AsyncIterator[bytes]:
    yield sse("hello", {"version": context.version, "started_at": rfc3339(context.started_at)}).encode()
    watched = context.identities.watched(identity)
    async for news in context.feed.follow(after):
        now = await watched.current()
        if now is None:
            return
        caller = now.caller()
        text = context.event_texts.of(news.events, caller)
        if news.readings_at is not None:
            text += sse("readings", {"at": rfc3339(news.readings_at)}).encode()
        notes = [note for note in news.notes if note.for_everyone or caller.is_operator]
        text += "".join(sse(note.name, note.data) for note in notes).encode("utf-8", "backslashreplace")
        yield text or PING.encode()


def _visible_page(
    tables: Transaction, caller: Caller, where: EventFilter, cursor: str | None, limit: int
) -> ListView[EventView]:
    found: list[EventRecord] = []
    for _ in range(MAX_ROUNDS):
        page = tables.events.page(where, cursor=cursor, limit=limit - len(found))
        found += [event for event in page.items if may_see_event(event, caller)]
        cursor = page.next_cursor
        if cursor is None or len(found) == limit or caller.is_operator:
            break
    return ListView(items=[event_view(event) for event in found], next_cursor=cursor)
