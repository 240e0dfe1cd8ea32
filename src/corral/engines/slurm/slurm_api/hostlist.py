"""Expands Slurm's short form of node names: `gpu[1,3-5],login`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BRACKETS = re.compile(r"\[([^]]*)\]")


def expand(text: str) -> list[str]:
    """All names in a host list, in order."""
    return [name for part in parts(text) for name in _expanded(part)]


def parts(text: str, brackets: str = "[]") -> Iterator[str]:
    """Split at the commas outside of brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter == brackets[0]) - (letter == brackets[1])
        if letter == "," and not depth:
            yield part
            part = ""
        else:
            part += letter
    if part:
        yield part


def _expanded(part: str) -> Iterator[str]:
    found = _BRACKETS.search(part)
    if found is None:
        yield part
        return
    before, behind = part[: found.start()], part[found.end() :]
    for numbers in found[1].split(","):
        first, _, last = numbers.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield from _expanded(f"{before}{number:0{len(first)}d}{behind}")
