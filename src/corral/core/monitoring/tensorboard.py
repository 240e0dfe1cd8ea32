"""Scalars in TensorBoard event files.

An event file is a sequence of records (length, checksum of it, data, checksum of that); each record is a protobuf
message `Event` with a time, a step and a summary of values. Only its scalars are read: `simple_value`, or a tensor of
one number, as newer writers store them. Everything else is skipped. Files of jobs are not trusted: a message that
contradicts itself ends the reading of that record, and the checksums are not needed for that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from corral.core.monitoring.curves import MOST_NAME_LETTERS, Reported, point_of

#: length and its checksum before the data, one checksum after it
HEADER_BYTES = 12
FOOTER_BYTES = 4

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
#: types of numbers in a tensor: float, double, int32, int64
_TENSOR_FLOAT, _TENSOR_DOUBLE, _TENSOR_INT32, _TENSOR_INT64 = 1, 2, 3, 9
_CONTENT = {_TENSOR_FLOAT: "<f", _TENSOR_DOUBLE: "<d", _TENSOR_INT32: "<i", _TENSOR_INT64: "<q"}

Field = tuple[int, int, int | bytes]


class Malformed(Exception):
    """The bytes are not such a message."""


def record_length(header: bytes) -> int:
    """The number of bytes of the data after a header."""
    (length,) = struct.unpack_from("<Q", header)
    return int(length)


def scalars(record: bytes) -> Iterator[Reported]:
    """The scalars of one record, in their order. Raises `Malformed`."""
    at, step, summaries = 0.0, 0, []
    for number, kind, value in _fields(record):
        if number == 1 and kind == _FIXED64 and isinstance(value, bytes):
            (at,) = struct.unpack("<d", value)
        elif number == 2 and kind == _VARINT and isinstance(value, int):
            step = value
        elif number == 5 and kind == _BYTES and isinstance(value, bytes):
            summaries.append(value)
    if step >= 1 << 62:
        return
    for summary in summaries:
        for number, kind, value in _fields(summary):
            if number == 1 and kind == _BYTES and isinstance(value, bytes):
                found = _scalar(value)
                if found is not None:
                    yield Reported(found[0], point_of(step, at, found[1]))


def _scalar(message: bytes) -> tuple[str, float] | None:
    """The tag and the number of a summary's value; None if it is an image, text or a histogram."""
    tag, number = "", None
    for field, kind, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if field == 1 and kind == _BYTES:
            tag = value.decode("utf-8", errors="replace")
        elif field == 2 and kind == _FIXED32:
            (number,) = struct.unpack("<f", value)
        elif field == 8 and kind == _BYTES:
            number = _tensor(value)
    return (tag, number) if number is not None and 0 < len(tag) <= MOST_NAME_LETTERS else None


def _tensor(message: bytes) -> float | None:
    """The only number of a tensor; None if it has several, or none."""
    dtype, content, listed = 0, b"", b""
    for field, kind, value in _fields(message):
        if field == 1 and kind == _VARINT and isinstance(value, int):
            dtype = value
        elif field == 4 and kind == _BYTES and isinstance(value, bytes):
            content = value
        elif field in (5, 6) and isinstance(value, bytes):
            listed = value  # float_val, double_val: packed, or one number
    layout = _CONTENT.get(dtype)
    if layout is None:
        return None
    found = content or listed
    if len(found) != struct.calcsize(layout):
        return None
    (number,) = struct.unpack(layout, found)
    return float(number)


def _fields(message: bytes) -> Iterator[Field]:
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise Malformed(f"wire type {kind}")
        if length > len(message) - at:
            raise Malformed("a field is longer than its message")
        yield number, kind, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise Malformed("a number has no end")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
