"""Lines of a stream of bytes that match a text or a pattern, with their numbers and places.

Also a program of its own, which reads a pattern and the bytes from its standard input: a pattern can take for ever, and
only a process can be stopped then. So only the standard library is imported here.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

#: Only the beginning of a longer line is searched.
MAX_LINE_BYTES = 64 * 1024
#: Characters of a long line that are shown around the match.
MAX_SHOWN = 1000
CHUNK_BYTES = 256 * 1024
#: Limits of the process that searches for a pattern.
CPU_SECONDS = 5
MEMORY_BYTES = 512 << 20

#: Position of the match in a line; -1 for none.
Matcher = Callable[[str], int]


@dataclass(frozen=True)
class Match:
    line: int
    offset: int
    text: str


class LineScan:
    """Receives bytes and keeps the lines that match, until there are `limit`.

    `line` and `offset` are then those of the first line that was not searched.
    """

    def __init__(self, matcher: Matcher, *, offset: int, line: int, limit: int, needle: bytes = b"") -> None:
        """`needle` is a text that every matching line contains, if known: data without it is skipped."""
        self._matcher = matcher
        self._needle = needle
        self._limit = limit
        self._kept = bytearray()
        self._length = 0
        self.offset = offset
        self.line = line
        self.matches: list[Match] = []
        #: lines that were compared, and not passed over
        self.compared = 0

    @property
    def is_full(self) -> bool:
        return len(self.matches) >= self._limit

    @property
    def has_part(self) -> bool:
        """Whether the data ends within a line."""
        return self._length > 0

    def feed(self, data: bytes) -> None:
        start = 0
        while not self.is_full:
            end = data.find(b"\n", start)
            if end < 0:
                self._keep(data[start:])
                return
            self._keep(data[start:end])
            self.end_line(newline=1)
            start = self._pass_over(data, end + 1)

    def end_line(self, *, newline: int = 0) -> None:
        text = self._kept.decode("utf-8", "replace").rstrip("\r")
        found = self._matcher(text)
        self.compared += 1
        if found >= 0:
            begin = max(0, min(found - MAX_SHOWN // 4, len(text) - MAX_SHOWN))
            self.matches.append(Match(line=self.line, offset=self.offset, text=text[begin : begin + MAX_SHOWN]))
        self.line += 1
        self.offset += self._length + newline
        self._kept.clear()
        self._length = 0

    def _keep(self, part: bytes) -> None:
        self._kept += part[: MAX_LINE_BYTES - len(self._kept)]
        self._length += len(part)

    def _pass_over(self, data: bytes, start: int) -> int:
        """Position after all whole lines, if none of them contains the needle."""
        if not self._needle:
            return start
        end = data.find(self._needle, start)
        last = data.rfind(b"\n", start, len(data) if end < 0 else end)
        if last < 0:
            return start
        self.line += data.count(b"\n", start, last + 1)
        self.offset += last + 1 - start
        return last + 1


@dataclass(frozen=True)
class Outcome:
    matches: list[Match]
    #: the offset of the first line that was not searched
    offset: int
    line: int


def outcomes(scan: LineScan) -> tuple[Outcome, Outcome]:
    """Matches in whole lines, and in the last piece, which counts as a line because nothing follows."""
    whole = Outcome(matches=list(scan.matches), offset=scan.offset, line=scan.line)
    if scan.has_part and not scan.is_full:
        scan.end_line()
    return whole, Outcome(matches=list(scan.matches), offset=scan.offset, line=scan.line)


def text_scan(text: str, *, ignore_case: bool, offset: int, line: int, limit: int) -> LineScan:
    if not ignore_case:
        return LineScan(
            lambda row: row.find(text), offset=offset, line=line, limit=limit, needle=text.encode("utf-8", "replace")
        )
    folded = text.casefold()
    return LineScan(lambda row: row.casefold().find(folded), offset=offset, line=line, limit=limit)


def pattern_scan(pattern: str, *, ignore_case: bool, offset: int, line: int, limit: int) -> LineScan:
    """Raises re.error."""
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)

    def matcher(row: str) -> int:
        found = compiled.search(row)
        return -1 if found is None else found.start()

    return LineScan(matcher, offset=offset, line=line, limit=limit)


def main() -> None:
    """The first line of the input is the query, the rest is the log."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    source = sys.stdin.buffer
    question = json.loads(source.readline())
    try:
        scan = pattern_scan(question.pop("pattern"), **question)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stdout.write(json.dumps({"error": str(error)}))
        return
    while not scan.is_full and (data := source.read(CHUNK_BYTES)):
        scan.feed(data)
    # Close the input before the answer is written, so that the writer stops.
    os.close(source.fileno())
    sys.stdout.write(json.dumps([asdict(found) for found in outcomes(scan)]))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
