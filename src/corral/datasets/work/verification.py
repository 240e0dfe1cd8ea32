"""Reads everything that versions need, to find damage before the data is needed."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from corral.datasets.content.piece_reader import Wanted, ranges, read_range
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import Damaged
from corral.datasets.history.records import Commit
from corral.datasets.history.trees import pieces_of, walk

_Use = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    #: the object in the storage
    object: str
    reason: str
    #: the versions that need it, each with the paths of the files in it
    uses: dict[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    versions: int
    pieces: int
    bytes: int
    damages: tuple[Damage, ...]


def verify(pieces: PieceStore, commits: Iterable[Commit], *, threads: int) -> Verified:
    """Check every piece of these versions, each once."""
    damages: list[Damage] = []
    uses: dict[bytes, list[_Use]] = {}
    versions = 0
    for commit in commits:
        versions += 1
        try:
            for item in walk(pieces, bytes.fromhex(commit.tree)):
                if item.entry.kind == "file":
                    for digest, _ in pieces_of(pieces, item.entry):
                        uses.setdefault(digest, []).append((commit.id, item.path))
        except Damaged as error:
            damages.append(Damage(object=error.name, reason=error.reason, uses={commit.id: error.files}))
    wanted = []
    for digest, place in zip(uses, pieces.locate(list(uses)), strict=True):
        if place is None:
            reason = f"no pack in {pieces.blobs.where} holds it"
            damages.append(Damage(object=f"piece {digest.hex()}", reason=reason, uses=_by_version(uses[digest])))
        else:
            wanted.append(Wanted(digest, place, uses[digest]))
    wanted.sort(key=lambda piece: (piece.place.pack, piece.place.offset))

    def check(group: list[Wanted[_Use]]) -> list[Damage]:
        return [
            Damage(object=part.name, reason=part.reason, uses=_by_version(piece.targets))
            for piece, part in read_range(group, pieces)
            if isinstance(part, Damaged)
        ]

    with ThreadPoolExecutor(max(threads, pieces.blobs.parallel)) as pool:
        for found in pool.map(check, ranges(wanted)):
            damages += found
    return Verified(
        versions=versions,
        pieces=len(uses),
        bytes=sum(piece.place.length for piece in wanted),
        damages=tuple(damages),
    )


def _by_version(uses: Iterable[_Use]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for version, path in uses:
        found.setdefault(version, []).append(path)
    return {version: tuple(paths) for version, paths in found.items()}
