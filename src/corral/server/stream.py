"""News as they are committed: the audit events, pushed to whoever follows, in order and exactly once.

A follower is only a place in the sequence of event ids. It reads on from there, out of memory while that reaches back
far enough, else out of the store; so a slow one holds nobody up, and one that comes back misses nothing. Who may see
which event is decided in `visibility`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from corral.control.records import EventRecord

PING_SECONDS = 15.0
PING = ": ping\n\n"
_KEPT_EVENTS = 4096
_BATCH_EVENTS = 500


class EventFeed:
    """`read_after(event_id, limit)` gives committed events out of the store; it runs on a thread."""

    def __init__(self, read_after: Callable[[int, int], Sequence[EventRecord]], *, kept: int = _KEPT_EVENTS) -> None:
        self._read_after = read_after
        self._recent: deque[EventRecord] = deque()
        self._kept = kept
        #: every event after this id is in `_recent`; None until the first one came
        self._complete_after: int | None = None
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on `publish` wakes followers on this loop."""
        self._loop = loop

    def publish(self, events: Sequence[EventRecord]) -> None:
        """Committed events, oldest first, every one of them, from any thread. Never blocks."""
        if self._loop is not None and events and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, tuple(events))

    def close(self) -> None:
        """End every follower; on the event loop."""
        self._closed = True
        self._wake()

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def follow(self, after: int, *, ping_seconds: float = PING_SECONDS) -> AsyncIterator[Sequence[EventRecord]]:
        """Everything after an event id, in batches; an empty batch after every quiet `ping_seconds`."""
        place = after
        while not self._closed:
            # Taken before reading: what is published between the reading and the waiting still wakes us.
            news = self._news
            batch = self._remembered(place)
            if batch is None:
                batch = await asyncio.to_thread(self._read_after, place, _BATCH_EVENTS)
            if batch:
                place = batch[-1].id
                yield batch
                continue
            try:
                await asyncio.wait_for(news.wait(), ping_seconds)
            except TimeoutError:
                yield ()

    def _take(self, events: Sequence[EventRecord]) -> None:
        if self._complete_after is None:
            self._complete_after = events[0].id - 1
        newest = self._recent[-1].id if self._recent else self._complete_after
        self._recent.extend(event for event in events if event.id > newest)
        while len(self._recent) > self._kept:
            self._complete_after = self._recent.popleft().id
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _remembered(self, place: int) -> Sequence[EventRecord] | None:
        """The events after a place, or None where memory does not reach back to it."""
        if self._complete_after is None or place < self._complete_after:
            return None
        if not self._recent or self._recent[-1].id <= place:
            return ()
        newer: list[EventRecord] = []
        for event in reversed(self._recent):
            if event.id <= place:
                break
            newer.append(event)
        newer.reverse()
        return newer[:_BATCH_EVENTS]


def sse(event: str, data: Any, event_id: int | str | None = None) -> str:
    """One server-sent event."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    # JSON has no raw line breaks, so one data line is always enough.
    return f"{head}event: {event}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
