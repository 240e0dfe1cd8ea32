"""Compresses tables of whole numbers: one row per subject, one column per time.

Values of neighbouring times are similar. So each row is turned into differences (from its first value, from the
previous value, or differences of those: whichever is smallest), these are cut to the bytes they need, and bytes of the
same significance are stored together, which a general compressor packs well. Lossless.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import zstandard

from corral.telemetry.history.precision import Ints

#: rows, columns, greatest common divisor, kind of differences, bytes per start value, bytes per difference
_HEADER = struct.Struct("<HIQBBB")
_FROM_FIRST, _FROM_BEFORE, _OF_DIFFERENCES = range(3)
_LEVEL = 3


def pack(tables: Sequence[Ints]) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(b"".join(map(_packed, tables)))


def unpack(data: bytes) -> list[Ints]:
    plain = memoryview(zstandard.ZstdDecompressor().decompress(data))
    tables = []
    offset = 0
    while offset < len(plain):
        table, offset = _unpacked(plain, offset)
        tables.append(table)
    return tables


def _packed(table: Ints) -> bytes:
    rows, columns = table.shape
    # Devices that report whole percents use only every tenth unit.
    divisor = int(np.gcd.reduce(table, axis=None)) if table.size else 0
    if divisor > 1:
        table = table // divisor
    kind, starts, differences = _least_differences(table)
    start_width, start_bytes = _bytes_of(starts)
    width, body = _bytes_of(differences)
    return _HEADER.pack(rows, columns, max(divisor, 1), kind, start_width, width) + start_bytes + body


def _unpacked(plain: memoryview, offset: int) -> tuple[Ints, int]:
    rows, columns, divisor, kind, start_width, width = _HEADER.unpack_from(plain, offset)
    offset += _HEADER.size
    split = min(columns, 2 if kind == _OF_DIFFERENCES else 1)
    starts = _from_bytes(plain, offset, rows, split, start_width)
    offset += rows * split * start_width
    rest = _from_bytes(plain, offset, rows, columns - split, width)
    offset += rows * (columns - split) * width
    table = np.empty((rows, columns), np.int64)
    table[:, :split] = starts
    table[:, split:] = rest
    match kind:
        case 0:
            table[:, 1:] += table[:, :1]
        case 1:
            np.cumsum(table, axis=1, out=table)
        case _:
            np.cumsum(table[:, 1:], axis=1, out=table[:, 1:])
            np.cumsum(table, axis=1, out=table)
    if divisor > 1:
        table *= divisor
    return table, offset


def _least_differences(table: Ints) -> tuple[int, Ints, Ints]:
    """The kind, the values that the differences start from, and the differences."""
    if table.shape[1] < 3:
        return _FROM_FIRST, table[:, :1], table[:, 1:] - table[:, :1]
    from_before = np.diff(table, axis=1)
    kinds = [
        (_FROM_FIRST, table[:, :1], table[:, 1:] - table[:, :1]),
        (_FROM_BEFORE, table[:, :1], from_before),
        (_OF_DIFFERENCES, np.column_stack((table[:, 0], from_before[:, 0])), np.diff(from_before, axis=1)),
    ]
    return min(kinds, key=lambda found: float(np.abs(found[2]).sum(dtype=np.float64)))


def _bytes_of(values: Ints) -> tuple[int, bytes]:
    """Bytes per value, and all lowest bytes, then all of the next significance, and so on."""
    # The sign goes to the lowest bit, so that small negative numbers have few bytes, too.
    folded = ((values << 1) ^ (values >> 63)).view(np.uint64)
    width = (int(folded.max(initial=0)).bit_length() + 7) // 8
    planes = np.ascontiguousarray(folded, dtype="<u8").reshape(-1, 1).view(np.uint8)[:, :width]
    return width, planes.T.tobytes()


def _from_bytes(plain: memoryview, offset: int, rows: int, columns: int, width: int) -> Ints:
    count = rows * columns
    if not width:
        return np.zeros((rows, columns), np.int64)
    planes = np.frombuffer(plain, np.uint8, count * width, offset).reshape(width, count)
    folded: npt.NDArray[np.uint64] = planes[0].astype(np.uint64)
    for weight in range(1, width):
        folded |= planes[weight].astype(np.uint64) << np.uint64(8 * weight)
    values = (folded >> np.uint64(1)).view(np.int64) ^ -((folded & np.uint64(1)).view(np.int64))
    return values.reshape(rows, columns)
