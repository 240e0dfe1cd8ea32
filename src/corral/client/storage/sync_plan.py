"""The plan that makes one tree of files equal to another: a pure function of both; no file is read.

A plan is executed in this order: conflicting entries are removed, directories are created, files are copied. Surplus
entries are deleted after all of that succeeded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["file", "dir", "other"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    kind: Kind
    size: int = 0
    modified_ms: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """One side: entries by path, relative to the root and separated by /."""

    entries: Mapping[str, Entry]
    #: whether a file keeps its modification time; files in a bucket have the time of the upload
    keeps_times: bool = True
    #: whether a directory without files can exist
    keeps_directories: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    #: entries of the target that conflict with an entry of another kind in the source, deepest first
    clear: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    #: entries of the target that the source does not have, deepest first
    delete: tuple[str, ...] = ()
    #: files that are equal already
    unchanged: tuple[str, ...] = ()
    #: links and devices of the source, which are not copied
    left_out: tuple[str, ...] = ()
    #: paths that cannot be copied, with the reason
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.clear or self.directories or self.copy or self.delete or self.refused)


def plan(source: Tree, target: Tree, *, delete: bool = False, equal_contents: Collection[str] | None = None) -> Plan:
    """`equal_contents` are the files with the same contents on both sides, where contents were compared; else size and
    time decide."""
    clear, refused = _conflicts(source, target, delete)
    usable = {path: entry for path, entry in source.entries.items() if path not in refused and entry.kind != "other"}
    gone = frozenset(clear)
    there = {path: entry for path, entry in target.entries.items() if path not in gone}
    unchanged = [path for path in _files(usable) if _is_unchanged(path, source, target, there, equal_contents)]
    known = frozenset(unchanged)
    return Plan(
        clear=tuple(clear),
        directories=tuple(_new_directories(usable, there, target)),
        copy=tuple(path for path in _files(usable) if path not in known),
        delete=tuple(_deepest_first(_surplus(source, there, target))) if delete else (),
        unchanged=tuple(unchanged),
        left_out=tuple(sorted(path for path, entry in source.entries.items() if entry.kind == "other")),
        refused=refused,
    )


def _conflicts(source: Tree, target: Tree, delete: bool) -> tuple[list[str], dict[str, str]]:
    """Entries of the target to remove first, and paths that cannot be copied because nothing may be removed."""
    clear: set[str] = set()
    refused: dict[str, str] = {}
    for path, entry in source.entries.items():
        if entry.kind == "other":
            continue
        found = target.entries.get(path)
        if found is None or found.kind == entry.kind:
            continue
        if found.kind == "other" and entry.kind == "file":
            continue  # replaced like a file
        if delete:
            clear |= {path, *(below for below in target.entries if below.startswith(f"{path}/"))}
        else:
            refused[path] = f"is a {_kind_name(found)} there and a {_kind_name(entry)} here"
    for path in source.entries:
        blocked = next((parent for parent in _parents(path) if parent in refused), None)
        if blocked is not None:
            refused.setdefault(path, f"{blocked} {refused[blocked]}")
    return _deepest_first(clear), refused


def _is_unchanged(
    path: str, source: Tree, target: Tree, there: Mapping[str, Entry], equal_contents: Collection[str] | None
) -> bool:
    mine, found = source.entries[path], there.get(path)
    if found is None or found.kind != "file" or found.size != mine.size:
        return False
    if equal_contents is not None:
        return path in equal_contents
    if target.keeps_times:
        return found.modified_ms == mine.modified_ms
    return found.modified_ms >= mine.modified_ms


def _new_directories(usable: Mapping[str, Entry], there: Mapping[str, Entry], target: Tree) -> Iterator[str]:
    if not target.keeps_directories:
        return
    for path, entry in sorted(usable.items()):
        if entry.kind == "dir" and path not in there:
            yield path


def _surplus(source: Tree, there: Mapping[str, Entry], target: Tree) -> Iterator[str]:
    needed = set(source.entries)
    for path in source.entries:
        # A bucket does not list the directories of its files.
        needed.update(_parents(path))
    for path, entry in there.items():
        if path not in needed and (target.keeps_directories or entry.kind != "dir"):
            yield path


def _files(entries: Mapping[str, Entry]) -> list[str]:
    return sorted(path for path, entry in entries.items() if entry.kind == "file")


def _deepest_first(paths: Collection[str] | Iterator[str]) -> list[str]:
    return sorted(paths, key=lambda path: (-path.count("/"), path))


def _parents(path: str) -> Iterator[str]:
    names = path.split("/")
    for depth in range(1, len(names)):
        yield "/".join(names[:depth])


def _kind_name(entry: Entry) -> str:
    return {"file": "file", "dir": "directory", "other": "link or device"}[entry.kind]
