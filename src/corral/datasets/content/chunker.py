"""Content-defined chunking: cuts a large file so that a change moves only the cuts around it.

A cut is made where the eight bytes before it, seen as two numbers, mix to a small number. It depends on nothing else,
so inserted or removed bytes shift the cuts behind them together with the data. NumPy mixes many positions at once, one
pass for each of the four alignments of four-byte numbers; that is faster than hashing the pieces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: No cut within the first bytes of a piece: they are skipped.
LEAST = 128 * 1024
#: After that, a cut comes after this many bytes on average.
_MEAN_GAP = 128 * 1024
#: The longest piece, if no cut is found, for example in long repetitions.
MOST = 1024 * 1024

_WINDOW = 8
_BLOCK = 64 * 1024
_FIRST = np.uint32(0x9E3779B1)
_SECOND = np.uint32(0x85EBCA77)
_BELOW = np.uint32((1 << 32) // _MEAN_GAP)


def cuts_of(data: bytes | memoryview, *, last: bool) -> list[int]:
    """The ends of consecutive pieces that begin at the start of `data`.

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
    """The first position behind a window within [begin, end) that is a cut."""
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
