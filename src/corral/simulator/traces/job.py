"""A job of a trace, independent of the format, and the reading of lines and tables.

A reader yields one `TraceJob` after the other, in the order of the file, and counts the jobs that it leaves out. The
fleet on which the jobs will run is not known here.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from corral.core.model import DEFAULT_PRIORITY

#: the user of jobs in a trace without users
UNKNOWN_USER = "trace"
#: by reason: how many jobs a reader left out
LeftOut = Counter[str]


class UnreadableTrace(Exception):
    """A trace file is missing, or a row of it cannot be parsed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceJob:
    name: str
    submitted_at: float
    #: without other jobs on its resources
    run_seconds: float
    user: str = UNKNOWN_USER
    group: str = ""
    #: whole GPUs of all its nodes together
    gpus: int = 0
    #: a share of one GPU in thousandths, in place of whole ones
    gpu_milli: int = 0
    #: None if the trace has no number of nodes: then the fleet decides
    nodes: int | None = None
    #: the sum over all its nodes
    cpu_milli: int = 0
    memory_bytes: int = 0
    models: tuple[str, ...] = ()
    time_limit_seconds: float | None = None
    priority: int = DEFAULT_PRIORITY


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of a table, by the names of its columns, with its file and line number."""

    path: Path
    line: int
    cells: Mapping[str, str]

    def has(self, column: str) -> bool:
        return bool(self.cells.get(column, "").strip())

    def text(self, column: str, default: str | None = None) -> str:
        value = self.cells.get(column, "").strip()
        if value:
            return value
        if default is None:
            raise self.error(f"{column} is empty")
        return default

    def number(self, column: str, default: float | None = None) -> float:
        if default is not None and not self.has(column):
            return default
        value = self.text(column)
        try:
            found = float(value)
        except ValueError:
            raise self.error(f"{column} is {value!r}, not a number") from None
        if found != found or found in (float("inf"), float("-inf")):
            raise self.error(f"{column} is {value!r}, not a finite number")
        return found

    def count(self, column: str, default: int | None = None) -> int:
        """A whole number, 0 or more."""
        found = self.number(column, default)
        if found < 0 or found != int(found):
            raise self.error(f"{column} is {self.text(column)!r}, not a whole number from 0 on")
        return int(found)

    def error(self, problem: str) -> UnreadableTrace:
        return unreadable(self.path, self.line, problem)


def unreadable(path: Path, line: int, problem: str) -> UnreadableTrace:
    return UnreadableTrace(f"{path}, line {line}: {problem}")


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, plain or compressed with gzip, detected from its content."""
    try:
        with path.open("rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        with _opened(path, is_compressed) as text:
            yield from text
    except UnicodeDecodeError as error:
        raise UnreadableTrace(f"{path} is not a text file: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableTrace(f"{path} cannot be read: {reason}") from error


def _opened(path: Path, is_compressed: bool) -> TextIO:
    if is_compressed:
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def rows(path: Path, needed: Iterable[str], *, delimiter: str = ",") -> Iterator[Row]:
    """The rows of a table with a line of titles. Only the columns in `needed` must exist."""
    # In a table with bars as delimiters a quotation mark has no special meaning.
    reader = csv.reader(lines(path), delimiter=delimiter, quotechar='"' if delimiter == "," else None)
    try:
        titles = [title.strip() for title in next(reader, [])]
        missing = [title for title in needed if title not in titles]
        if missing:
            raise unreadable(path, 1, f"the columns {', '.join(missing)} are missing")
        for cells in reader:
            if not cells or not any(cells):
                continue
            if len(cells) != len(titles):
                raise unreadable(path, reader.line_num, f"{len(cells)} fields, but {len(titles)} titles")
            yield Row(path=path, line=reader.line_num, cells=dict(zip(titles, cells, strict=True)))
    except csv.Error as error:
        raise unreadable(path, reader.line_num, str(error)) from error
