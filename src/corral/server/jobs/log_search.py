"""Searching the logs of a job, a bounded piece at a time.

Decides the cost of one request: a number of bytes, a number of matches, and for a pattern a process with limits of its
own. The next request continues at the position where this one ended.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.errors import Invalid
from corral.control.ports import LogSource
from corral.core.model import attempt_id
from corral.server.http.problems import Problem
from corral.server.jobs import line_scan
from corral.server.jobs.line_scan import Match, Outcome
from corral.stores.storage.fair_pool import Steps

#: Maximum that one request reads.
MAX_BYTES = 32 << 20
#: … where each line that is compared counts for more than its length: even an empty one has a cost …
LINE_BYTES = 32
#: … and maximum number of logs: a large gang has many, and even an empty one has a cost.
MAX_LOGS = 100
#: Patterns that are searched at the same time.
MAX_PATTERNS = 2
#: Time limit of a process; its CPU limit ends it earlier unless the machine is overloaded.
_PATTERN_SECONDS = 30.0

_patterns = threading.BoundedSemaphore(MAX_PATTERNS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    text: str
    is_pattern: bool = False
    ignore_case: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """A line of a job's log, with its attempt and rank."""

    attempt: int
    rank: int
    offset: int = 0
    line: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    #: each with the place of its log
    matches: Sequence[tuple[Position, Match]]
    #: None when everything was searched
    following: Position | None


def search(
    engine: LogSource, job_id: str, logs: Sequence[tuple[int, int]], question: Question, start: Position, limit: int
) -> Steps[Answer]:
    """Matches in these logs (attempt and rank of each) from a position on. May take a second or more."""
    if not question.is_pattern:
        return (yield from _search(_Scanned(engine, job_id, question), logs, start, limit))
    if not _patterns.acquire(blocking=False):
        raise Problem(503, "Busy", "Other patterns are being searched for: try again in a moment.", slug="busy")
    try:
        return (yield from _search(_Scanned(engine, job_id, question), logs, start, limit))
    finally:
        _patterns.release()


def _search(scanned: _Scanned, logs: Sequence[tuple[int, int]], start: Position, limit: int) -> Steps[Answer]:
    matches: list[tuple[Position, Match]] = []
    position: Position | None = start
    for _ in range(MAX_LOGS):
        if position is None or len(matches) >= limit or scanned.budget <= 0:
            break
        yield
        found, after, at_end = scanned.scan(position, limit - len(matches))
        matches += [(position, match) for match in found]
        position = _next_log(logs, position) if at_end else after
    return Answer(matches=matches, following=position)


def _next_log(logs: Sequence[tuple[int, int]], position: Position) -> Position | None:
    place = logs.index((position.attempt, position.rank)) + 1
    return Position(attempt=logs[place][0], rank=logs[place][1]) if place < len(logs) else None


class _Scanned:
    """One job's logs, read until the budget is spent."""

    def __init__(self, engine: LogSource, job_id: str, question: Question) -> None:
        self._engine = engine
        self._job_id = job_id
        self._question = question
        self._is_drained = False
        self.budget = MAX_BYTES

    def scan(self, position: Position, limit: int) -> tuple[Sequence[Match], Position, bool]:
        """Matches of one log, the position where the search ended, and whether that is the log's end."""
        self._is_drained = False
        chunks = self._chunks(position)
        first = next(chunks, None)
        if first is None:
            return [], position, True
        # Rotated lines are not searched: numbering continues with the first line that is left.
        offset, data = first
        begin = replace(position, offset=offset)
        find = self._in_process if self._question.is_pattern else self._in_thread
        whole, last = find(begin, itertools.chain([data], (data for _, data in chunks)), limit)
        is_full = len(whole.matches) >= limit
        # A line longer than the whole budget would otherwise be searched again and again.
        is_stuck = not is_full and whole.offset == offset
        found = last if self._is_drained or is_stuck else whole
        at_end = self._is_drained and not is_full
        return found.matches, replace(begin, offset=found.offset, line=found.line), at_end

    def _in_thread(self, begin: Position, data: Iterator[bytes], limit: int) -> tuple[Outcome, Outcome]:
        question = self._question
        scan = line_scan.text_scan(
            question.text, ignore_case=question.ignore_case, offset=begin.offset, line=begin.line, limit=limit
        )
        for piece in data:
            before = scan.compared
            scan.feed(piece)
            self.budget -= LINE_BYTES * (scan.compared - before)
            if scan.is_full:
                break
        return line_scan.outcomes(scan)

    def _in_process(self, begin: Position, data: Iterator[bytes], limit: int) -> tuple[Outcome, Outcome]:
        question = {
            "pattern": self._question.text,
            "ignore_case": self._question.ignore_case,
            "offset": begin.offset,
            "line": begin.line,
            "limit": limit,
        }
        answer = _asked(question, data)
        if isinstance(answer, dict):
            raise Invalid(f"{self._question.text!r} is not a pattern: {answer['error']}", field="q")
        whole, last = (
            replace(Outcome(**each), matches=[Match(**match) for match in each["matches"]]) for each in answer
        )
        return whole, last

    def _chunks(self, position: Position) -> Iterator[tuple[int, bytes]]:
        """The pieces, each with its offset."""
        attempt, offset = attempt_id(self._job_id, position.attempt), position.offset
        expected = None
        while self.budget > 0:
            chunk = self._engine.logs(attempt, position.rank, offset, line_scan.CHUNK_BYTES)
            begin = chunk.next_offset - len(chunk.data)
            if not chunk.data:
                self._is_drained = True
                return
            # A gap, because the log was rotated during the search: begin a new scan after it.
            if expected is not None and begin != expected:
                return
            self.budget -= len(chunk.data)
            yield begin, chunk.data
            expected = offset = chunk.next_offset


def _asked(question: dict[str, Any], data: Iterator[bytes]) -> Any:
    """The answer of a separate process with limits on time and memory."""
    command = [sys.executable, "-I", "-S", line_scan.__file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watch = threading.Timer(_PATTERN_SECONDS, process.kill)
        watch.start()
        try:
            # The process closes its input when it has enough matches.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(question).encode() + b"\n")
                for piece in data:
                    process.stdin.write(piece)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            output = process.stdout.read()
        finally:
            watch.cancel()
            process.kill()
    try:
        return json.loads(output)
    except ValueError:
        raise Invalid("this pattern takes too long or too much memory: write a simpler one", field="q") from None
