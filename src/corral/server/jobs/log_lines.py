"""A job's output, as a whole, from its last lines on, or as it is written.

Decides when a followed log is over: when the job has ended and its whole output was read. For a requeued job, the
follower waits and continues with the next attempt.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from corral.control.ports import LogChunk, LogSource
from corral.core.model import Job, attempt_id
from corral.server.events.stream import PING, PING_SECONDS, sse

CHUNK_BYTES = 256 * 1024
_FIRST_TAIL_BYTES = 64 * 1024
_MAX_TAIL_BYTES = 64 * 1024 * 1024
#: How often a quiet log is polled: quickly at first, for output that comes in bursts.
_SHORTEST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPlace:
    """The requested output: attempt (None: the present one and later ones) and rank."""

    job_id: str
    rank: int = 0
    attempt: int | None = None
    #: number of last lines; None means all
    tail: int | None = None
    #: where a disconnected follower continues: an attempt, and the first byte that it has not received
    after: tuple[int, int] | None = None


def place_after(event_id: str) -> tuple[int, int] | None:
    """The position in the id of a `log` event, or None if the id is not valid."""
    number, _, offset = event_id.partition(":")
    if not (number.isdecimal() and offset.isdecimal()):
        return None
    return int(number), int(offset)


def text_pieces(engine: LogSource, attempt: str, place: LogPlace) -> Iterator[bytes]:
    """The output so far."""
    offset = 0
    if place.tail is not None:
        last = _tail(engine, attempt, place.rank, place.tail)
        yield last.data
        offset = last.next_offset
        if last.at_end:
            return
    while True:
        chunk = engine.logs(attempt, place.rank, offset, CHUNK_BYTES)
        if not chunk.data:
            return
        yield chunk.data
        offset = chunk.next_offset


class LogFollower:
    """`job_now` returns the present job, or None once it was deleted."""

    def __init__(
        self,
        engine: LogSource,
        place: LogPlace,
        *,
        job_now: Callable[[], Awaitable[Job | None]],
        is_closed: Callable[[], bool],
    ) -> None:
        self._engine = engine
        self._place = place
        self._job_now = job_now
        self._is_closed = is_closed

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events: `log` with text, and `end` at the end of the output. The id of a `log` event is the
        position after it, so that a follower can reconnect without a gap or a repetition."""
        number, offset = self._place.after or (self._place.attempt or 0, 0)
        pause, silent = _SHORTEST_PAUSE_SECONDS, 0.0
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        first = self._place.after is None
        while not self._is_closed():
            # The job is read before its log: if the job has ended here, all its output is on the disk.
            job = await self._job_now()
            if job is None:
                yield sse("end", {"state": "deleted", "exit_code": None})
                return
            if self._place.attempt is None and number < job.attempt and (number == 0 or first):
                number, first = job.attempt, True
            if number:
                chunk = await self._next(number, offset, first=first)
                first, offset = False, chunk.next_offset
                text = decoder.decode(chunk.data)
                if text:
                    # bytes of an incomplete character were not sent
                    yield sse("log", {"text": text}, f"{number}:{offset - len(decoder.getstate()[0])}")
                    pause, silent = _SHORTEST_PAUSE_SECONDS, 0.0
                if chunk.data:
                    continue
            # Before `end`: an attempt that began and ended since the last poll has output, too.
            if self._place.attempt is None and number and job.attempt > number:
                number, offset, first = number + 1, 0, False
                continue
            if job.state.is_ended or (self._place.attempt is not None and job.attempt > number):
                yield sse("end", {"state": job.state, "exit_code": job.exit_code})
                return
            await asyncio.sleep(pause)
            silent += pause
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            if silent >= PING_SECONDS:
                silent = 0.0
                yield PING

    async def _next(self, number: int, offset: int, *, first: bool) -> LogChunk:
        attempt = attempt_id(self._place.job_id, number)
        if first and self._place.tail is not None:
            return await asyncio.to_thread(_tail, self._engine, attempt, self._place.rank, self._place.tail)
        return await asyncio.to_thread(self._engine.logs, attempt, self._place.rank, offset, CHUNK_BYTES)


def _tail(engine: LogSource, attempt: str, rank: int, lines: int) -> LogChunk:
    """The last lines: read further back until there are enough."""
    size = _FIRST_TAIL_BYTES
    while True:
        chunk = engine.logs(attempt, rank, -size, size)
        found = chunk.data.splitlines(keepends=True)
        if len(found) > lines or len(chunk.data) < size or size >= _MAX_TAIL_BYTES:
            kept = found[-lines:] if lines else []
            return LogChunk(data=b"".join(kept), next_offset=chunk.next_offset, at_end=chunk.at_end)
        size *= 4
