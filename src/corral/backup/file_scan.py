"""Files below the home that a backup holds, read through `corral.files`: a job may change them meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from corral.backup.manifest import SavedFile
from corral.backup.pieces import PieceWriter, read_in_pieces
from corral.files import Place

#: More nested directories, and more entries of one directory, are left out and reported.
MAX_DEPTH = 64
MAX_NAMES = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The files of one folder of the home that are saved."""

    #: below the home
    folder: str
    #: whether to save a file, by its path below the folder; the first argument is that path in its parts
    wanted: Callable[[Sequence[str]], bool] = lambda _: True
    #: larger files are left out and reported
    max_file_bytes: int | None = None


class FileScan:
    """Saves files; content that an earlier backup holds is not read again."""

    def __init__(self, home: Path, writer: PieceWriter, earlier: Callable[[str], SavedFile | None]) -> None:
        self._home = home
        self._writer = writer
        self._earlier = earlier
        #: reasons why something is not in the backup
        self.left_out: list[str] = []

    def save(self, selection: Selection) -> Iterator[SavedFile]:
        """The folder, those above it and everything below it, directories before their content."""
        names = tuple(selection.folder.split("/"))
        try:
            for depth in range(1, len(names) + 1):
                with Place.at(self._home, *names[:depth]) as above:
                    yield _described("/".join(names[:depth]), above.stat())
            place = Place.at(self._home, *names)
        except FileNotFoundError:
            return
        except OSError as error:
            self._leave_out(selection.folder, error.strerror or str(error))
            return
        with place:
            yield from self._inside(place, names, (), selection)

    def _inside(
        self, place: Place, above: tuple[str, ...], below: tuple[str, ...], selection: Selection
    ) -> Iterator[SavedFile]:
        path = "/".join((*above, *below))
        if len(below) > MAX_DEPTH:
            self._leave_out(path, f"more than {MAX_DEPTH} directories in each other")
            return
        try:
            names = sorted(place.names(MAX_NAMES))
        except OSError as error:
            self._leave_out(path, error.strerror or str(error))
            return
        for name in names:
            parts = (*below, name)
            try:
                yield from self._entry(place, above, parts, selection)
            except FileNotFoundError:
                continue  # gone since the directory was listed
            except OSError as error:
                self._leave_out("/".join((*above, *parts)), error.strerror or str(error))

    def _entry(
        self, place: Place, above: tuple[str, ...], parts: tuple[str, ...], selection: Selection
    ) -> Iterator[SavedFile]:
        name, path = parts[-1], "/".join((*above, *parts))
        status = place.stat(name)
        if stat.S_ISDIR(status.st_mode):
            if selection.wanted((*parts, "")):
                with place.below(name) as inner:
                    yield _described(path, inner.stat())
                    yield from self._inside(inner, above, parts, selection)
        elif not selection.wanted(parts):
            return
        elif stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=place.descriptor)
            yield replace(_described(path, status), target=target)
        elif stat.S_ISREG(status.st_mode):
            limit = selection.max_file_bytes
            if limit is not None and status.st_size > limit:
                self._leave_out(path, f"larger than {limit} bytes")
            else:
                yield self._content(place, name, path)

    def _content(self, place: Place, name: str, path: str) -> SavedFile:
        with place.open_to_read(name) as file:
            # Described before it is read: a change after that gives the next backup another time.
            described = _described(path, os.fstat(file.fileno()))
            earlier = self._earlier(path)
            if earlier is not None and earlier.is_same_file(described):
                return replace(described, pieces=earlier.pieces)
            pieces = self._writer.add_all(read_in_pieces(file))
            return replace(described, pieces=pieces, size=sum(piece.size for piece in pieces))

    def _leave_out(self, path: str, reason: str) -> None:
        self.left_out.append(f"{path}: {reason}")


def _described(path: str, status: os.stat_result) -> SavedFile:
    kind = "directory" if stat.S_ISDIR(status.st_mode) else "link" if stat.S_ISLNK(status.st_mode) else "file"
    is_file = kind == "file"
    return SavedFile(
        path=path,
        kind=kind,
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        size=status.st_size if is_file else 0,
        modified_ns=status.st_mtime_ns,
        inode=status.st_ino if is_file else 0,
    )
