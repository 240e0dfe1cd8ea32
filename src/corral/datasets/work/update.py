"""Changes a directory from one version to another: only differences are written, file by file.

Files in the directory that are in neither version are a user's work: then nothing is changed. If it is killed, every
file is either the old one or the new one, so running it again finishes it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corral.datasets.content.blobs import remove_tree
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import LocalChanges
from corral.datasets.history.records import Entry, PathEntry, digest_of
from corral.datasets.history.trees import pieces_of
from corral.datasets.work.checkout import staging, write_tree
from corral.datasets.work.progress import OnProgress
from corral.datasets.work.scan import FoundDirectory, FoundFile, Opener, open_root, scan
from corral.datasets.work.working_index import WorkingIndex


@dataclass(kw_only=True, slots=True)
class _Found:
    """The content of the directory, by path."""

    files: dict[str, FoundFile]
    links: dict[str, str]
    #: outer ones first
    directories: list[str]


def update_directory(
    entries: Sequence[PathEntry],
    old: Mapping[str, Entry],
    directory: Path,
    pieces: PieceStore,
    index: WorkingIndex,
    *,
    version: str,
    threads: int,
    force: bool,
    on_progress: OnProgress | None = None,
) -> None:
    """Make the directory hold these entries. `old` is what was put there last, as far as that is known."""
    wanted = {item.path: item.entry for item in entries}
    with open_root(directory) as root, Opener(root) as opener:
        found = _flatten(scan(root))
        contents = _Contents(opener, index, pieces)
        right = {path for path, file in found.files.items() if contents.is_file(file, wanted.get(path))}
        strange = [
            path
            for path, file in found.files.items()
            if path not in right and not contents.is_file(file, old.get(path))
        ]
    for path, target in found.links.items():
        if _is_link(target, wanted.get(path)):
            right.add(path)
        elif not _is_link(target, old.get(path)):
            strange.append(path)
    if strange and not force:
        raise LocalChanges(str(directory), sorted(strange))
    with staging(directory) as folder:
        missing = [item for item in entries if item.entry.kind == "dir" or item.path not in right]
        write_tree(missing, folder, pieces, version=version, threads=threads, on_progress=on_progress)
        _apply(wanted, missing, found, right, folder, directory)
        remove_tree(folder)


class _Contents:
    """Whether a file matches an entry: by the index if it is valid, else by reading the file."""

    def __init__(self, opener: Opener, index: WorkingIndex, pieces: PieceStore) -> None:
        self._opener = opener
        self._index = index
        self._pieces = pieces

    def is_file(self, file: FoundFile, entry: Entry | None) -> bool:
        if entry is None or entry.kind != "file" or entry.size != file.stamp.size:
            return False
        known = self._index.find(file)
        if known is not None:
            return (known.digest, known.listed) == (entry.digest, entry.listed)
        at = 0
        with self._opener.open(file) as descriptor:
            for digest, length in pieces_of(self._pieces, entry):
                if digest_of(os.pread(descriptor, length, at)) != digest:
                    return False
                at += length
        return True


def _is_link(target: str, entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "link" and entry.target == target


def _flatten(found: FoundDirectory) -> _Found:
    flat = _Found(files={}, links={}, directories=[])

    def add(folder: FoundDirectory) -> None:
        flat.files |= {file.path: file for file in folder.files}
        for name, target in folder.links:
            flat.links[f"{folder.path}/{name}" if folder.path else name] = target
        for inner in folder.directories:
            flat.directories.append(inner.path)
            add(inner)

    add(found)
    return flat


def _apply(
    wanted: Mapping[str, Entry],
    missing: Sequence[PathEntry],
    found: _Found,
    right: set[str],
    folder: Path,
    directory: Path,
) -> None:
    for path in ["", *found.directories]:
        mode = stat.S_IMODE((directory / path).lstat().st_mode)
        if not mode & stat.S_IWUSR:
            os.chmod(directory / path, mode | stat.S_IWUSR)
    for path in [*found.files, *found.links]:
        kind = "file" if path in found.files else "link"
        if path not in wanted or wanted[path].kind != kind:
            (directory / path).unlink()
    for path in reversed(found.directories):
        if path not in wanted or wanted[path].kind != "dir":
            (directory / path).rmdir()
    for item in missing:
        if item.entry.kind == "dir":
            (directory / item.path).mkdir(exist_ok=True)
        else:
            os.replace(folder / item.path, directory / item.path)
    for path in right & found.files.keys():
        if found.files[path].executable != wanted[path].executable:
            os.chmod(directory / path, 0o755 if wanted[path].executable else 0o644)
