"""A job's output, as a whole, from its last lines on, or as it is written.

Decides when a followed log is over: when the job has ended and its whole output was read. For a requeued job, the
follower waits and continues with the next attempt.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from corral.control.ports import LogChunk, LogSource
from corral.core.model import Job, attempt_id
from corral.server.events.stream import PING, PING_SECONDS, sse
from corral.stores.storage.fair_pool import Steps

T = TypeVar("T")

CHUNK_BYTES = 256 * 1024
_MAX_TAIL_BYTES = 64 * 1024 * 1024
#: How often a quiet log is polled: quickly at first, for output that comes in bursts.
_SHORTEST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Run(Protocol):
    def __call__(self, steps: Steps[T], /) -> Awaitable[T]:
        """The generator's result, from a thread."""


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
        steps = tail_start(engine, attempt, place.rank, place.tail)
        while True:
            try:
                next(steps)
            except StopIteration as found:
                offset = found.value
                break
            yield b""  # other tasks may run first
    while True:
        chunk = engine.logs(attempt, place.rank, offset, CHUNK_BYTES)
        if not chunk.data:
            return
        yield chunk.data
        offset = chunk.next_offset


class LogFollower:
    """`job_now` returns the present job, or None once it was deleted; `run` reads on a thread of the user."""

    def __init__(
        self,
        engine: LogSource,
        place: LogPlace,
        *,
        job_now: Callable[[], Awaitable[Job | None]],
        is_closed: Callable[[], bool],
        run: Run,
    ) -> None:
        self._engine = engine
        self._run = run
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
            offset = await self._run(tail_start(self._engine, attempt, self._place.rank, self._place.tail))
        return await self._run(_chunk(self._engine, attempt, self._place.rank, offset))


def tail_start(engine: LogSource, attempt: str, rank: int, lines: int) -> Steps[int]:
    """The offset at which the last lines begin: the log is read backwards, a block at a time."""
    block = engine.logs(attempt, rank, -CHUNK_BYTES, CHUNK_BYTES)
    data, end = block.data, block.next_offset
    start = end - len(data)
    # The end of the last line begins no other one.
    wanted = lines + data.endswith((b"\n", b"\r"))
    if not lines:
        return end
    while True:
        ends = [found.end() for found in _LINE_END.finditer(data)]
        if len(ends) >= wanted:
            return start + ends[-wanted]
        wanted -= len(ends)
        if not start or end - start >= _MAX_TAIL_BYTES:
            return start
        yield
        block = engine.logs(attempt, rank, max(0, start - CHUNK_BYTES), min(start, CHUNK_BYTES))
        before = block.next_offset - len(block.data)
        if before >= start:
            return start  # what was before was rotated away
        was_cut = data.startswith(b"\n")
        data, start = block.data[: start - before], before
        if was_cut:
            data = data.removesuffix(b"\r")


def _chunk(engine: LogSource, attempt: str, rank: int, offset: int) -> Steps[LogChunk]:
    yield from ()
    return engine.logs(attempt, rank, offset, CHUNK_BYTES)
