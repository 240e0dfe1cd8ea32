"""Where a large file is cut, so that a change moves only the cuts around it.

A cut stands where the eight bytes before it, seen as two numbers, mix to a small one: it depends on nothing else, so
bytes put in or taken out shift the cuts behind them together with the data. NumPy mixes many places at once, one pass
for each of the four ways in which numbers of four bytes can lie; that is quicker than the hashing of the pieces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: No cut within the first bytes of a piece: they need not be looked at.
LEAST = 128 * 1024
#: From there on a cut comes after this many bytes on average.
_MEAN_GAP = 128 * 1024
#: Where nothing looks like a cut, for example in long repetitions.
MOST = 1024 * 1024

_WINDOW = 8
_BLOCK = 64 * 1024
_FIRST = np.uint32(0x9E3779B1)
_SECOND = np.uint32(0x85EBCA77)
_BELOW = np.uint32((1 << 32) // _MEAN_GAP)


def cuts_of(data: bytes | memoryview, *, last: bool) -> list[int]:
    """The ends of the pieces that begin at the start of `data`, one behind the other.

    If more of the file follows (`last` is false), the rest behind the last cut is left for the next call, which must
    begin there.
    """
    cuts: list[int] = []
    begin, size = 0, len(data)
    while begin < size:
        end = _next_cut(data, begin, min(begin + MOST, size))
        if end == size and not last and size - begin < MOST:
            break  # it may go on
        cuts.append(end)
        begin = end
    return cuts


def _next_cut(data: bytes | memoryview, begin: int, limit: int) -> int:
    at = begin + LEAST
    while at < limit:
        stop = min(at + _BLOCK, limit)
        found = _first_hit(data, at - _WINDOW + 1, stop)
        if found is not None:
            return found
        at = stop
    return limit


def _first_hit(data: bytes | memoryview, begin: int, end: int) -> int | None:
    """The first place behind a window within [begin, end) that is a cut."""
    best: int | None = None
    for shift in range(4):
        count = (end - begin - shift) // 4
        if count < 2:
            continue
        words: NDArray[np.uint32] = np.frombuffer(data, "<u4", count=count, offset=begin + shift)
        mixed = words[:-1] * _FIRST
        mixed += words[1:] * _SECOND
        hits = mixed < _BELOW
        place = int(hits.argmax())
        if hits[place]:
            cut = begin + shift + place * 4 + _WINDOW
            best = cut if best is None else min(best, cut)
    return best
