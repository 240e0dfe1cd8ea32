"""Removes data that no version needs, while commits run. `leases` explains why that is safe.

The order is essential: publish the list of condemned packs, then read leases, then versions, then remove. A process
that is killed in between leaves condemned packs; the next run continues with them, or keeps packs that are in use
again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from corral.datasets.content.packs import PackIndex, index_name, pack_name
from corral.datasets.content.pieces import CONDEMNED, PieceStore
from corral.datasets.errors import ObjectMissing
from corral.datasets.history.leases import LEASE_SECONDS, live_leases
from corral.datasets.history.records import DIGEST_BYTES, canonical, decode_list, decode_tree
from corral.datasets.history.versions import VersionStore

GRACE_SECONDS = 24 * 3600.0
#: A pack of which less than this part is needed is reported.
_LITTLE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class GarbagePack:
    id: str
    size: int
    #: time since it was stored
    age_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PartlyUsed:
    """Kept completely, because a part of it is needed."""

    id: str
    size: int
    live_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GarbageReport:
    dry_run: bool
    #: everything in the storage
    packs: int
    bytes: int
    #: not needed by any version, and older than the grace time: removed, or to be removed
    garbage: tuple[GarbagePack, ...]
    #: not needed either, but too new: a running commit may need it
    fresh_bytes: int
    partly_used: tuple[PartlyUsed, ...]
    #: removed by this run, including leftovers of killed runs and writers
    removed_packs: int = 0
    removed_bytes: int = 0
    #: packs that are removed by a later run, since a running commit may rely on them
    waiting_packs: int = 0

    @property
    def garbage_bytes(self) -> int:
        return sum(pack.size for pack in self.garbage)


class Marker:
    """The pieces that the versions need. Trees that two versions share are walked once."""

    def __init__(self, pieces: PieceStore) -> None:
        self._pieces = pieces
        self._live: set[bytes] = set()

    def mark(self, metadata: VersionStore) -> None:
        """Raises `Damaged` if a tree cannot be read: then it is unknown what is garbage."""
        for dataset in metadata.datasets():
            for commit in metadata.log(dataset):
                self._mark_tree(bytes.fromhex(commit.tree))

    def _mark_tree(self, tree: bytes) -> None:
        if tree in self._live:
            return
        levels = [(tree, iter(self._marked(tree)))]
        while levels:
            directory, inner = levels[-1]
            below = next(inner, None)
            if below is None:
                # Only now: a marked tree must have everything below it marked.
                self._live.add(directory)
                levels.pop()
            elif below not in self._live:
                levels.append((below, iter(self._marked(below))))

    def _marked(self, tree: bytes) -> list[bytes]:
        """Mark the files of a directory; the directories in it."""
        directories = []
        for entry in decode_tree(self._pieces.get(tree)):
            if entry.kind == "dir":
                directories.append(entry.digest)
            elif entry.kind == "file" and entry.digest not in self._live:
                if entry.listed:
                    self._live.update(digest for digest, _ in decode_list(self._pieces.get(entry.digest)))
                self._live.add(entry.digest)
        return directories

    def live_bytes(self, packs: Iterable[PackIndex]) -> dict[str, int]:
        """How much of each pack is needed."""
        live = np.frombuffer(b"".join(sorted(self._live)), dtype=f"S{DIGEST_BYTES}")
        found = {}
        for pack in packs:
            lengths = np.fromiter((length for _, length in pack.pieces), np.int64, len(pack.pieces))
            needed = np.isin(pack.digests(), live)
            # A pack of which only an empty piece is needed is needed.
            found[pack.id] = max(1, int(lengths[needed].sum())) if needed.any() else 0
        return found


def collect(
    pieces: PieceStore,
    metadata: VersionStore,
    *,
    now: float,
    dry_run: bool = True,
    grace_seconds: float = GRACE_SECONDS,
) -> GarbageReport:
    """Find data that no version needs, and remove it unless it is a dry run. Safe while commits run; several may
    run."""
    pieces.refresh()
    marker = Marker(pieces)
    marker.mark(metadata)
    report, garbage = _look(pieces, marker, now, grace_seconds, dry_run)
    if dry_run:
        return report
    blobs = pieces.blobs
    new = garbage.keys() - pieces.condemned
    if new:
        blobs.put(f"{CONDEMNED}{os.urandom(16).hex()}", [canonical({"packs": sorted(new)})])
    leases = live_leases(blobs, now)
    pieces.refresh()
    marker.mark(metadata)
    needed = {pack for pack, live in marker.live_bytes(pieces.packs()).items() if live}
    removed, waiting = _remove(pieces, leases, needed, garbage)
    # Data that is being written right now is not a leftover, however short the grace time.
    swept = blobs.sweep(now - max(grace_seconds, LEASE_SECONDS))
    pieces.refresh()
    return _with(report, removed, swept, waiting)


def _look(
    pieces: PieceStore, marker: Marker, now: float, grace_seconds: float, dry_run: bool
) -> tuple[GarbageReport, dict[str, int]]:
    packs = pieces.packs()
    live = marker.live_bytes(packs)
    stored = {item.name.rsplit("/", 1)[1]: item for item in pieces.blobs.objects("packs/")}
    born = {pack.id: pack.at for pack in packs}
    sizes = {pack.id: pack.size for pack in packs} | {name: item.size for name, item in stored.items()}
    unneeded = {
        pack: now - born.get(pack, stored[pack].modified_at if pack in stored else now)
        for pack in sizes
        if not live.get(pack)
    }
    garbage = {pack: sizes[pack] for pack, age in unneeded.items() if age >= grace_seconds}
    report = GarbageReport(
        dry_run=dry_run,
        packs=len(sizes),
        bytes=sum(sizes.values()),
        garbage=tuple(
            GarbagePack(id=pack, size=size, age_seconds=unneeded[pack]) for pack, size in sorted(garbage.items())
        ),
        fresh_bytes=sum(sizes[pack] for pack in unneeded if pack not in garbage),
        partly_used=tuple(
            PartlyUsed(id=pack.id, size=pack.size, live_bytes=live[pack.id])
            for pack in packs
            if 0 < live[pack.id] < _LITTLE * pack.size
        ),
    )
    return report, garbage


def _remove(
    pieces: PieceStore, leases: list[frozenset[str]], needed: set[str], sizes: dict[str, int]
) -> tuple[dict[str, int], int]:
    """Finish every run that no commit prevents: this one, and those that were killed or had to wait."""
    removed: dict[str, int] = {}
    waiting = 0
    for item in list(pieces.blobs.objects(CONDEMNED)):
        try:
            condemned = json.loads(pieces.blobs.get(item.name))["packs"]
        except ObjectMissing:
            continue  # another run finished it
        going = [pack for pack in condemned if pack not in needed]
        if not all(item.name[len(CONDEMNED) :] in seen for seen in leases):
            waiting += len(going)
            continue
        for pack in going:
            # The index first: a pack without one is unused.
            pieces.blobs.remove(index_name(pack))
            pieces.blobs.remove(pack_name(pack))
            removed[pack] = sizes.get(pack, 0)
        pieces.blobs.remove(item.name)
    return removed, waiting


def _with(report: GarbageReport, removed: dict[str, int], swept: int, waiting: int) -> GarbageReport:
    return GarbageReport(
        dry_run=False,
        packs=report.packs,
        bytes=report.bytes,
        garbage=report.garbage,
        fresh_bytes=report.fresh_bytes,
        partly_used=report.partly_used,
        removed_packs=len(removed),
        removed_bytes=sum(removed.values()) + swept,
        waiting_packs=waiting,
    )
