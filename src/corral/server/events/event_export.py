"""The audit log as a file, sent page by page so that its length does not matter."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Sequence

from corral.control.records import EventFilter, EventRecord
from corral.server.http.context import ServerContext
from corral.server.schemas.fleet.nodes import event_view

MEDIA_TYPES = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
COLUMNS = ("id", "at", "actor", "action", "subject", "source", "detail")
_PAGE = 500
#: A spreadsheet would read a cell that begins like this as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def event_file(context: ServerContext, where: EventFilter, form: str) -> AsyncIterator[str]:
    """The events that match, newest first, in one of the forms of `MEDIA_TYPES`."""
    write = csv_lines if form == "csv" else json_lines
    if form == "csv":
        yield ",".join(COLUMNS) + "\r\n"
    cursor: str | None = None
    while True:
        page = await context.read(lambda tables, after: tables.events.page(where, cursor=after, limit=_PAGE), cursor)
        yield write(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


def csv_lines(events: Sequence[EventRecord]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    for event in events:
        view = event_view(event).model_dump()
        cells = (str(view[name]) for name in COLUMNS[:-1])
        writer.writerow([*map(_harmless, cells), json.dumps(view["detail"], ensure_ascii=False)])
    return text.getvalue()


def json_lines(events: Sequence[EventRecord]) -> str:
    return "".join(json.dumps(event_view(event).model_dump(), ensure_ascii=False) + "\n" for event in events)


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
