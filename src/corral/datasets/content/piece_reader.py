"""Reads many pieces with few requests: neighbours in a pack are read together, and each is verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from corral.datasets.content.packs import pack_name
from corral.datasets.content.pieces import PieceStore, Place, check_piece
from corral.datasets.errors import Damaged, ObjectMissing

#: One request reads at most this much, and over gaps of at most this much.
_RANGE_BYTES = 8 << 20
_GAP_BYTES = 64 << 10

Target = TypeVar("Target")


@dataclass(slots=True)
class Wanted(Generic[Target]):
    """A needed piece, and all places where it is written."""

    digest: bytes
    place: Place
    targets: list[Target]


def ranges(wanted: Sequence[Wanted[Target]]) -> Iterator[list[Wanted[Target]]]:
    """Groups that one request can read. The pieces come in the order of packs and offsets."""
    group: list[Wanted[Target]] = []
    for piece in wanted:
        if group:
            first, last = group[0].place, group[-1].place
            near = piece.place.pack == first.pack and piece.place.offset - last.offset - last.length <= _GAP_BYTES
            if not near or piece.place.offset + piece.place.length - first.offset > _RANGE_BYTES:
                yield group
                group = []
        group.append(piece)
    if group:
        yield group


def read_range(
    group: list[Wanted[Target]], pieces: PieceStore
) -> Iterator[tuple[Wanted[Target], memoryview | Damaged]]:
    """Each piece of a group, or its error."""
    first, last = group[0].place, group[-1].place
    try:
        data = memoryview(
            pieces.blobs.get(pack_name(first.pack), first.offset, last.offset + last.length - first.offset)
        )
    except ObjectMissing as error:
        yield from ((piece, Damaged(error.name, f"it is not in {pieces.blobs.where}")) for piece in group)
        return
    for piece in group:
        begin = piece.place.offset - first.offset
        try:
            yield piece, check_piece(data[begin : begin + piece.place.length], piece.digest, piece.place)
        except Damaged as error:
            yield piece, error
