"""TensorBoard event files as its writers make them, without TensorBoard."""

from __future__ import annotations

import struct


def event(step: int, at: float, tag: str, value: float) -> bytes:
    """An `Event` with one scalar as `simple_value`."""
    return _event(step, at, _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def tensor_event(step: int, at: float, tag: str, value: float) -> bytes:
    """An `Event` with one scalar as a tensor of one float, as newer writers store it."""
    tensor = b"\x08\x01" + b"\x12\x00" + _bytes(4, struct.pack("<f", value))
    return _event(step, at, _bytes(1, tag.encode()) + _bytes(8, tensor))


def records(*messages: bytes) -> bytes:
    """A file of these messages; readers of curves do not check the checksums."""
    return b"".join(struct.pack("<QI", len(message), 0) + message + struct.pack("<I", 0) for message in messages)


def _event(step: int, at: float, value: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", at) + b"\x10" + _varint(step) + _bytes(5, _bytes(1, value))


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
