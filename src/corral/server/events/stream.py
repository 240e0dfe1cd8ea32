"""The event stream: committed audit events, sent to every follower in order and exactly once.

A follower is a position in the sequence of event ids. It reads on from there, from memory if the events are still kept
there, otherwise from the store; so a slow follower delays no other, and one that reconnects misses nothing. A follower
that does not read at all is disconnected (`connections`); it reconnects with the id of its last event. `visibility`
decides who may see which event, and `event_texts` how it is written.

Followers are also notified of new readings, and of progress, such as that of a simulation. These notes are not stored:
only the latest note of each key is kept, and a follower that was busy meanwhile receives it once.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.control.ports import Round
from corral.control.records import EventRecord
from corral.server.events.followers import Follower, Followers

PING_SECONDS = 15.0
PING = ": ping\n\n"
_KEPT_EVENTS = 4096
_BATCH_EVENTS = 500
#: Minimum time between two notifications of new readings, however many collectors there are.
TICK_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A notification that is not stored, such as progress."""

    number: int
    name: str
    data: Mapping[str, Any]
    #: otherwise for operators only
    for_everyone: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """The data that a follower receives at once; an empty update is a keep-alive."""

    events: Sequence[EventRecord] = ()
    #: when the newest readings were taken, if there are any since the last time
    readings_at: float | None = None
    notes: Sequence[Note] = ()


class EventFeed:
    """`read_after(event_id, limit)` reads committed events from the store; it runs on a thread."""

    def __init__(self, read_after: Callable[[int, int], Sequence[EventRecord]], *, kept: int = _KEPT_EVENTS) -> None:
        self._read_after = read_after
        self._recent: deque[EventRecord] = deque()
        self._kept = kept
        #: every event after this id is in `_recent`; None until the first one came
        self._complete_after: int | None = None
        self._followers = Followers()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        #: incremented with everything that is published
        self._rounds = 0
        #: time of the newest readings that followers are notified of
        self._readings_at: float | None = None
        self._next_readings_at: float | None = None
        #: when followers were last notified of readings, in the loop's time
        self._ticked = float("-inf")
        #: the latest note of each key, and the number of notes so far
        self._notes: dict[str, Note] = {}
        self._noted = 0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sets the loop on which `publish` wakes followers."""
        self._loop = loop

    def publish(self, events: Sequence[EventRecord]) -> None:
        """Committed events, oldest first, every one of them, from any thread. Never blocks."""
        if self._loop is not None and events and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, tuple(events))

    def take(self, taken: Round) -> None:
        """Notify followers of new readings; a sink of the sampling. Never blocks."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tick_soon, taken.at)

    def notify(self, key: str, name: str, data: Mapping[str, Any], *, for_everyone: bool = False) -> None:
        """Send a note; it replaces an earlier note with the same key. From any thread, never blocks."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, key, name, dict(data), for_everyone)

    def call_soon(self, action: Callable[[], None]) -> None:
        """Run an action on the event loop, after the events that were published before. From any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(action)

    def begin_at(self, newest: int) -> None:
        """All events up to this one are in the store: a follower from there on need not read it."""
        if self._complete_after is None:
            self._complete_after = newest

    def close(self) -> None:
        """End every follower; on the event loop."""
        self._closed = True
        self._followers.wake_all()

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def follower_count(self) -> int:
        return len(self._followers)

    async def follow(self, after: int, *, ping_seconds: float = PING_SECONDS) -> AsyncIterator[Update]:
        """Yields all events after an event id, in batches, and new readings; an empty update after every quiet
        `ping_seconds`.
        """
        follower = Follower(ping_seconds)
        self._followers.add(follower)
        try:
            async for update in self._follow(after, follower):
                yield update
                follower.sent_at = asyncio.get_running_loop().time()
        finally:
            self._followers.remove(follower)

    async def _follow(self, after: int, follower: Follower) -> AsyncIterator[Update]:
        place, readings_at, noted = after, self._readings_at, self._noted
        while not self._closed:
            batch = self._remembered(place)
            if batch is None:
                seen = self._rounds
                batch = await asyncio.to_thread(self._read_after, place, _BATCH_EVENTS)
                if not batch and seen != self._rounds:
                    continue  # an event arrived while the store was read
            fresh = self._readings_at if self._readings_at != readings_at else None
            notes = tuple(
                sorted((note for note in self._notes.values() if note.number > noted), key=lambda note: note.number)
            )
            if batch or fresh is not None or notes:
                place = batch[-1].id if batch else place
                readings_at, noted = self._readings_at, self._noted
                yield Update(events=tuple(batch), readings_at=fresh, notes=notes)
                continue
            # Nothing is awaited between the check for updates and this line: no update can be missed.
            await follower.wait()
            if asyncio.get_running_loop().time() - follower.sent_at >= follower.ping_seconds:
                yield Update()

    def _tick_soon(self, at: float) -> None:
        """Notify at once, or when the last notification is long enough ago; rounds in between are sent as one."""
        assert self._loop is not None
        is_due_already = self._next_readings_at is not None
        self._next_readings_at = at
        if not is_due_already:
            self._loop.call_at(max(self._loop.time(), self._ticked + TICK_SECONDS), self._tick)

    def _tick(self) -> None:
        assert self._loop is not None
        self._readings_at, self._next_readings_at = self._next_readings_at, None
        self._ticked = self._loop.time()
        self._wake()

    def _note(self, key: str, name: str, data: Mapping[str, Any], for_everyone: bool) -> None:
        self._noted += 1
        self._notes[key] = Note(number=self._noted, name=name, data=data, for_everyone=for_everyone)
        self._wake()

    def _take(self, events: Sequence[EventRecord]) -> None:
        if self._complete_after is None:
            self._complete_after = events[0].id - 1
        newest = self._recent[-1].id if self._recent else self._complete_after
        if events[0].id > newest + 1:
            # Another server wrote the events between, or wrote while this one became the leader: they are in the store.
            self._recent.clear()
            self._complete_after = events[0].id - 1
        self._recent.extend(event for event in events if event.id > newest)
        while len(self._recent) > self._kept:
            self._complete_after = self._recent.popleft().id
        self._wake()

    def _wake(self) -> None:
        self._rounds += 1
        self._followers.wake_soon()

    def _remembered(self, place: int) -> Sequence[EventRecord] | None:
        """The events after a position, or None if memory does not reach back that far."""
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
