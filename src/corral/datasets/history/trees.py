"""Reads a version: its tree, its files, the differences between two, and the bytes of one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.datasets.content.packs import pack_name
from corral.datasets.content.pieces import PieceStore, check_piece
from corral.datasets.errors import Damaged, NotFound, ObjectMissing, printable
from corral.datasets.history.records import MAX_DEPTH, MAX_ENTRIES, Entry, PathEntry, decode_list, decode_tree


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    path: str
    #: None if it does not exist before or after; 0 for directories and links
    old_size: int | None
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    """The differences of two trees, sorted by path. A file that moved is removed and added; it costs no bytes."""

    added: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()

    @property
    def bytes_added(self) -> int:
        return sum(change.size or 0 for change in self.added + self.changed)

    @property
    def bytes_removed(self) -> int:
        return sum(change.old_size or 0 for change in self.removed + self.changed)


def walk(pieces: PieceStore, tree: bytes) -> Iterator[PathEntry]:
    """Yields all entries of a tree, directories before their content. Raises `Damaged` if it is too deep or has too
    many entries: it may come from any bucket."""
    seen = 0
    levels = [("", iter(decode_tree(pieces.get(tree))))]
    while levels:
        path, entries = levels[-1]
        entry = next(entries, None)
        if entry is None:
            levels.pop()
            continue
        seen += 1
        if seen > MAX_ENTRIES:
            raise Damaged(f"tree {tree.hex()}", f"it has more than {MAX_ENTRIES} entries")
        inner = f"{path}/{entry.name}" if path else entry.name
        yield PathEntry(path=inner, entry=entry)
        if entry.kind == "dir":
            check_depth(len(levels), tree)
            levels.append((inner, iter(decode_tree(pieces.get(entry.digest)))))


def check_depth(depth: int, tree: bytes) -> None:
    """Raises `Damaged` if a tree has so many directories in each other that it is none."""
    if depth > MAX_DEPTH:
        raise Damaged(f"tree {tree.hex()}", f"it has more than {MAX_DEPTH} directories in each other")


def list_directory(pieces: PieceStore, tree: bytes, path: str) -> list[Entry]:
    """The entries of one directory of a version. Raises `NotFound`."""
    if not path:
        return decode_tree(pieces.get(tree))
    entry = find(pieces, tree, path)
    if entry.kind != "dir":
        raise NotFound(f"{printable(path)} is not a directory")
    return decode_tree(pieces.get(entry.digest))


def find(pieces: PieceStore, tree: bytes, path: str) -> Entry:
    entry = Entry(name="", kind="dir", digest=tree)
    for name in path.split("/"):
        below = decode_tree(pieces.get(entry.digest)) if entry.kind == "dir" else []
        entry = next((inner for inner in below if inner.name == name), Entry(name="", kind="link"))
        if not entry.name:
            raise NotFound(f"there is no {printable(path)} in this version")
    return entry


def pieces_of(pieces: PieceStore, entry: Entry) -> list[tuple[bytes, int]]:
    """The pieces of a file in order. Raises `Damaged` if their lengths do not add up to the file's."""
    if not entry.listed:
        return [(entry.digest, entry.size)] if entry.size else []
    parts = decode_list(pieces.get(entry.digest))
    if sum(length for _, length in parts) != entry.size:
        raise Damaged(f"list {entry.digest.hex()}", f"its pieces do not make {entry.size} bytes", files=[entry.name])
    return parts


def read_file(pieces: PieceStore, entry: Entry, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
    """The bytes of a file or a part of them, a piece at a time, each verified before it is returned."""
    end = entry.size if length is None else min(entry.size, offset + length)
    at = 0
    for digest, size in pieces_of(pieces, entry):
        begin, stop = max(offset - at, 0), min(end - at, size)
        if begin < stop:
            yield get_data(pieces, digest)[begin:stop]
        at += size


def get_data(pieces: PieceStore, digest: bytes) -> bytes:
    place = pieces.locate([digest])[0]
    try:
        if place is not None:
            return check_piece(pieces.blobs.get(pack_name(place.pack), place.offset, place.length), digest, place)
    except ObjectMissing:
        pass  # it may be in another pack by now
    return pieces.get(digest)


def diff(pieces: PieceStore, old: bytes | None, new: bytes) -> Diff:
    """The differences from one tree to another; from None everything is added. Equal directories are skipped."""
    added: list[Change] = []
    removed: list[Change] = []
    changed: list[Change] = []
    for path, before, after in _pairs(pieces, old, new, "", 1):
        if len(added) + len(removed) + len(changed) >= MAX_ENTRIES:
            raise Damaged(f"tree {new.hex()}", f"it differs in more than {MAX_ENTRIES} entries")
        old_size = _size(before)
        size = _size(after)
        change = Change(path=path, old_size=old_size, size=size)
        (added if before is None else removed if after is None else changed).append(change)
    return Diff(added=_sorted(added), removed=_sorted(removed), changed=_sorted(changed))


def _sorted(changes: list[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: change.path))


def _size(entry: Entry | None) -> int | None:
    return None if entry is None else entry.size


def _pairs(
    pieces: PieceStore, old: bytes | None, new: bytes | None, path: str, depth: int
) -> Iterator[tuple[str, Entry | None, Entry | None]]:
    if old == new:
        return
    before = {entry.name: entry for entry in decode_tree(pieces.get(old))} if old is not None else {}
    after = {entry.name: entry for entry in decode_tree(pieces.get(new))} if new is not None else {}
    for name in sorted(before.keys() | after.keys()):
        a, b = before.get(name), after.get(name)
        if a == b:
            continue
        inner = f"{path}/{name}" if path else name
        a_tree = a.digest if a is not None and a.kind == "dir" else None
        b_tree = b.digest if b is not None and b.kind == "dir" else None
        if a_tree is None or b_tree is None:
            # An entry that was a file and is a directory now is both removed and added.
            if a is not None and b is not None and a.kind != b.kind:
                yield inner, a, None
                yield inner, None, b
            else:
                yield inner, a, b
        if (below := b_tree or a_tree) is not None:
            check_depth(depth, below)
            yield from _pairs(pieces, a_tree, b_tree, inner, depth + 1)
