"""Follows the log of one pod through the API and keeps it as corral's own: reconnects lose and repeat nothing.

Each line has its time from the node, which is kept in UTC. After a break the log is asked for from the last time on,
and what was read is skipped. How far a log was read is written down at most once a second: after a crash the log is cut
back to that place, and read again from there. A kubelet keeps the newest part of a long log only: what it has removed
while no server was connected is lost.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

from corral.engines.attempts.clean_text import plain
from corral.engines.attempts.json_files import read_json, write_json
from corral.engines.attempts.log_segments import LogWriter
from corral.engines.kubernetes.api.client import ApiError, ApiNotFound, ApiUnavailable, check
from corral.engines.kubernetes.api.credentials import CredentialError
from corral.engines.kubernetes.api.objects import CONTAINER, moment
from corral.engines.kubernetes.attempts.records import POSITION

MARK = b"corral-up"
#: A connection that shows nothing for this long, as behind a proxy that has lost its other end, is renewed.
SILENT_SECONDS = 600.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
#: How long the end of a container may come after the end of its log.
SETTLE_SECONDS = 5.0
_NOTE_SECONDS = 1.0
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_LONGEST_STAMP = 64
_LONGEST_HEAD = 4096


class StampedLines:
    """Splits a log with times into parts: the time of the line, a part of its text, and whether the line begins."""

    def __init__(self) -> None:
        self._buffer = b""
        self._stamp: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
        self._buffer += chunk
        while self._buffer:
            is_first = self._stamp is None
            if self._stamp is None:
                stamp, space, rest = self._buffer.partition(b" ")
                if not space and len(stamp) < _LONGEST_STAMP:
                    return
                self._stamp = utc(stamp)
                if self._stamp:
                    self._buffer = rest
            stamp = self._stamp
            end = self._buffer.find(b"\n") + 1
            text, self._buffer = (self._buffer[:end], self._buffer[end:]) if end else (self._buffer, b"")
            if end:
                self._stamp = None
            if text or is_first:
                yield stamp, text, is_first


def utc(stamp: bytes) -> bytes:
    """The time of a line with nine digits of a second, in UTC: such times compare as bytes. A node writes its own time
    zone, whose offset changes twice a year. b"" if it is no time."""
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return b""
    second, fraction, zone = match.groups()
    if zone != b"Z":
        second = _utc_second(second, zone)
    return b"%s.%sZ" % (second, (fraction or b"").ljust(9, b"0"))


@lru_cache(maxsize=64)
def _utc_second(second: bytes, zone: bytes) -> bytes:
    at = datetime.fromisoformat((second + zone).decode()).astimezone(UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S").encode()


class LogFollower:
    """Runs in the event loop. `on_up` gets the time and the devices of the first line, `on_done` is called when
    everything was read. It ends when `is_superseded`: then the engine of another server writes this log."""

    def __init__(
        self,
        *,
        path: str,
        directory: Path,
        limit_bytes: int,
        on_up: Callable[[float, str], None],
        on_done: Callable[[], None],
        is_superseded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_superseded = is_superseded
        self._path = path
        self._on_up = on_up
        self._on_done = on_done
        directory.mkdir(parents=True, exist_ok=True)
        self._position_path = str(directory / POSITION)
        position: dict[str, Any] = read_json(self._position_path) or {}
        #: the last line that was begun: its time, its number among the lines of that time, and its bytes so far
        self._stamp = utc(str(position.get("stamp", "")).encode())
        self._number = int(position.get("number", 0))
        self._written = 0
        self._writer = LogWriter.continued(str(directory), limit_bytes, int(position.get("offset", 0)))
        self._head: bytes | None = None if position else b""
        self._noted_at = 0.0
        #: whether the last connection showed anything new
        self._has_heard = False
        self._ended = asyncio.Event()
        self.is_done = False

    def end(self) -> None:
        """The container has ended: the log is complete when the stream is over. Called in the event loop."""
        self._ended.set()

    async def run(self, client: httpx.AsyncClient) -> None:
        pause = FIRST_PAUSE_SECONDS
        try:
            while True:
                try:
                    await self._stream(client)
                    if self._is_superseded():
                        return
                    pause = FIRST_PAUSE_SECONDS
                    if await self._is_ended(SETTLE_SECONDS):
                        return
                except ApiNotFound:
                    return
                except (ApiError, ApiUnavailable, httpx.HTTPError, CredentialError):
                    # The container has not started, or its kubelet does not answer.
                    if self._ended.is_set() and pause >= LONGEST_PAUSE_SECONDS:
                        return
                    if self._has_heard:
                        pause = FIRST_PAUSE_SECONDS
                    # Many logs are followed: they do not all come back at the same moment.
                    await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                    pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
        finally:
            self._note(force=True)
            self._writer.close()
            self.is_done = True
            self._on_done()

    async def _is_ended(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _stream(self, client: httpx.AsyncClient) -> None:
        params = {"container": CONTAINER, "follow": "true", "timestamps": "true"}
        if self._stamp:
            # Whole seconds: lines that were read already are skipped.
            params["sinceTime"] = f"{self._stamp[:19].decode()}Z"
        lines, seen = StampedLines(), _Seen(self._stamp, self._number, self._written)
        self._has_heard = False
        timeout = httpx.Timeout(20.0, read=SILENT_SECONDS)
        async with client.stream("GET", self._path, params=params, timeout=timeout) as response:
            if response.status_code >= 400:
                check(response.status_code, await response.aread())
            async for chunk in response.aiter_bytes():
                if self._is_superseded():
                    return
                for stamp, text, is_first in lines.feed(chunk):
                    if stamp:
                        self._take(seen, stamp, text, is_first)
                self._note()

    def _take(self, seen: _Seen, stamp: bytes, text: bytes, is_first: bool) -> None:
        if is_first and not seen.begins(stamp):
            if stamp > self._stamp:
                self._stamp, self._number = stamp, 0
            self._number += 1
            self._written = 0
        text = seen.new_part(text)
        if not text:
            return
        self._has_heard = True
        self._written += len(text)
        if self._head is not None:
            self._read_head(stamp, text)
        else:
            self._writer.write(text)

    def _read_head(self, stamp: bytes, text: bytes) -> None:
        """The first line is the wrapper's: it says that the program begins. A kubelet that has removed it since shows
        what the program wrote: then it has begun, too."""
        assert self._head is not None
        self._head += text
        if not self._head.endswith(b"\n") and len(self._head) < _LONGEST_HEAD:
            return
        head, self._head = self._head, None
        word, _, devices = head.strip().partition(b" ")
        is_mark = word == MARK
        self._on_up(moment(stamp.decode()) or time.time(), plain(devices.decode(errors="replace")) if is_mark else "")
        if not is_mark:
            self._writer.write(head)

    def _note(self, *, force: bool = False) -> None:
        """The place at which the last line begins, so that it is read again as a whole. Not before the job has written
        anything: then the wrapper's line is read again, too."""
        now = time.monotonic()
        if self._is_superseded() or not self._writer.offset or (not force and now - self._noted_at < _NOTE_SECONDS):
            return
        self._noted_at = now
        offset = self._writer.offset - self._written
        write_json(self._position_path, {"offset": offset, "stamp": self._stamp.decode(), "number": self._number})


class _Seen:
    """The part of a log that was read before: the first `number` lines of the time `stamp`, of which
    the last one up to `written` bytes, and everything older."""

    def __init__(self, stamp: bytes, number: int, written: int) -> None:
        self._stamp = stamp
        self._number = number
        self._written = written
        self._met = 0
        self._skips = False
        self._left = 0

    def begins(self, stamp: bytes) -> bool:
        """Whether the line that begins was begun before."""
        self._skips, self._left = False, 0
        if not self._stamp or stamp > self._stamp:
            return False
        if stamp < self._stamp:
            self._skips = True
            return True
        self._met += 1
        if self._met < self._number:
            self._skips = True
            return True
        if self._met == self._number:
            self._left = self._written
            return True
        return False

    def new_part(self, text: bytes) -> bytes:
        if self._skips:
            return b""
        rest = text[self._left :]
        self._left = max(0, self._left - len(text))
        return rest
