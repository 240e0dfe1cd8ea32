"""Job arrays: the indexes in a text such as `0-99`, `0-99:5` or `1,3,7`, and the names of the jobs.

A packed array has few jobs, and each of them runs many items one after another; `1-500%8` has eight of them.
"""

from __future__ import annotations

import re

from corral.core.counts import counted

MAX_ARRAY_SIZE = 1000
#: Items of a packed array.
MAX_PACKED_ITEMS = 10_000
MAX_ARRAY_INDEX = 1_000_000

ARRAY_HINT = "write indexes such as 0-99, 0-99:5 or 1,3,7"

_PART = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")


def parse_array(text: str, most: int = MAX_ARRAY_SIZE) -> tuple[int, ...]:
    """The indexes in order, each once. Raises ValueError."""
    indexes: set[int] = set()
    for part in text.replace(" ", "").split(","):
        found = _part(part, text)
        if len(indexes) + len(found) > most:
            raise ValueError(f"an array has at most {counted(most, 'job')}, {text!r} asks for more")
        if indexes.intersection(found):
            raise ValueError(f"{text!r} names an index twice")
        indexes.update(found)
    return tuple(sorted(indexes))


def parse_packed(text: str) -> tuple[tuple[int, ...], ...]:
    """The items of each job of a packed array, such as `1-500%8`: eight jobs. Raises ValueError."""
    indexes, percent, jobs = text.replace(" ", "").partition("%")
    items = parse_array(indexes, MAX_PACKED_ITEMS)
    if not percent:
        return (items,)
    if not jobs.isdecimal() or not 1 <= int(jobs) <= MAX_ARRAY_SIZE:
        raise ValueError(f"{percent + jobs!r} is no number of jobs from 1 to {MAX_ARRAY_SIZE}: write 1-500%8")
    # In turn, so that items that get slower with their index are spread over all jobs.
    return tuple(items[first :: int(jobs)] for first in range(min(int(jobs), len(items))))


def array_job_name(array: str, index: int) -> str:
    return f"{array}-{index}"


def _part(part: str, text: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"{text!r} is not an array: {ARRAY_HINT}")
    first = int(match[1])
    last = first if match[2] is None else int(match[2])
    step = 1 if match[3] is None else int(match[3])
    if last < first:
        raise ValueError(f"{part} runs backwards: {ARRAY_HINT}")
    if step < 1:
        raise ValueError(f"{part} does not get anywhere with a step of 0: {ARRAY_HINT}")
    if last > MAX_ARRAY_INDEX:
        raise ValueError(f"the largest index is {MAX_ARRAY_INDEX}, got {last}")
    return range(first, last + 1, step)
