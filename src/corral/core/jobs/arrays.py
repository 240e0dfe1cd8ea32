"""Job arrays: the indexes in a text such as `0-99`, `0-99:5` or `1,3,7`, and the names of the jobs."""

from __future__ import annotations

import re

MAX_ARRAY_SIZE = 1000
MAX_ARRAY_INDEX = 1_000_000

ARRAY_HINT = "write indexes such as 0-99, 0-99:5 or 1,3,7"

_PART = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")


def parse_array(text: str) -> tuple[int, ...]:
    """The indexes in order, each once. Raises ValueError."""
    indexes: set[int] = set()
    for part in text.replace(" ", "").split(","):
        found = _part(part, text)
        if len(indexes) + len(found) > MAX_ARRAY_SIZE:
            raise ValueError(f"an array has at most {MAX_ARRAY_SIZE} jobs, {text!r} asks for more")
        if indexes.intersection(found):
            raise ValueError(f"{text!r} names an index twice")
        indexes.update(found)
    return tuple(sorted(indexes))


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
