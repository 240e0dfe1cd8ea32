"""Pieces are stored in packs: a pack is a sequence of pieces, and its index lists them.

The index is written after its pack, so a pack without one is a leftover of a killed process. A pack's id is the digest
of its index, which holds the digest of every piece: with the id everything can be verified. A random value in the index
makes each id unique, so that a pack that is about to be collected is never confused with one that was just uploaded.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from corral.datasets.errors import Damaged, UnknownFormat
from corral.datasets.history.records import DIGEST_BYTES, canonical, decode_list, digest_of, encode_list

#: Large enough for few requests to a bucket, small enough that several fit into memory.
PACK_BYTES = 32 << 20
_MAGIC = b"corral pack index 1\n"

Kind = Literal["data", "meta"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackIndex:
    id: str
    #: `data` are pieces of files; `meta` are trees and lists, kept separate so that a history is read with few requests
    kind: Kind
    #: when it was made, by the clock of the process that made it
    at: float
    pieces: tuple[tuple[bytes, int], ...]

    @property
    def size(self) -> int:
        return sum(length for _, length in self.pieces)

    def digests(self) -> NDArray[np.void]:
        return np.frombuffer(b"".join(digest for digest, _ in self.pieces), dtype=f"S{DIGEST_BYTES}")

    def offsets(self) -> NDArray[np.int64]:
        lengths = np.fromiter((length for _, length in self.pieces), dtype=np.int64, count=len(self.pieces))
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])


def encode_index(kind: Kind, at: float, pieces: Sequence[tuple[bytes, int]]) -> tuple[str, bytes]:
    """The index of a new pack, and the id that follows from it."""
    header = canonical({"kind": kind, "at": at, "word": os.urandom(16).hex(), "pieces": len(pieces)})
    data = _MAGIC + header + b"\n" + encode_list(pieces)
    return digest_of(data).hex(), data


def decode_index(pack: str, data: bytes) -> PackIndex:
    """Raises `Damaged` unless it is exactly the index that gave the pack its id."""
    if digest_of(data).hex() != pack:
        raise Damaged(index_name(pack), "its bytes do not match its name")
    if not data.startswith(_MAGIC):
        raise UnknownFormat(f"{index_name(pack)} is of a kind that this corral does not know: update it")
    header, _, pieces = data[len(_MAGIC) :].partition(b"\n")
    try:
        body = json.loads(header)
        kind, at = body["kind"], float(body["at"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise Damaged(index_name(pack), f"it is not an index ({type(error).__name__})") from None
    if kind not in ("data", "meta") or not math.isfinite(at):
        raise Damaged(index_name(pack), "its header is not that of an index")
    return PackIndex(id=pack, kind=kind, at=at, pieces=tuple(decode_list(pieces)))


def check_pack(pack: str, index: bytes, data: bytes) -> None:
    """Raises `Damaged` unless every piece matches the index; for servers that accept packs from clients."""
    decoded = decode_index(pack, index)
    if len(data) != decoded.size:
        raise Damaged(pack_name(pack), f"it has {len(data)} bytes, its index says {decoded.size}")
    at, view = 0, memoryview(data)
    for digest, length in decoded.pieces:
        if digest_of(view[at : at + length]) != digest:
            raise Damaged(pack_name(pack), f"piece {digest.hex()} at {at} is not what its index says")
        at += length


def pack_name(pack: str) -> str:
    return f"packs/{pack[:2]}/{pack}"


def index_name(pack: str) -> str:
    return f"index/{pack[:2]}/{pack}"
