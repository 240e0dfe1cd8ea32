"""The two ends of a transfer: directories of this machine and of volumes, both with the same interface."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from corral.client.http.errors import ClientError, NotFound
from corral.client.http.retries import Persistence
from corral.client.storage.download import is_unfinished
from corral.client.storage.sync_plan import Entry, Kind, Tree
from corral.client.storage.volume_files import VolumeFiles, time_ms
from corral.core.storage.checksums import checksum_of

if TYPE_CHECKING:
    from corral.client.views import VolumeFileView, VolumeView

#: `data:/path`, `ann/data:/path` or `v-12:/path`. A file of this machine with such a name is written ./data:/path.
_VOLUME_PLACE = re.compile(r"((?:[A-Za-z0-9_.-]+/)?[A-Za-z0-9_-]{2,63}):(/.*)?", re.DOTALL)
_CHUNK_BYTES = 1024 * 1024


class PlaceRefused(ClientError):
    """A source or target that cannot be used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A volume and a path, as typed."""

    #: None means this machine
    volume: str | None
    path: str

    @property
    def is_directory_by_name(self) -> bool:
        """Whether the text can only mean a directory."""
        return self.path.endswith("/") or (self.volume is not None and not self.path)

    @property
    def name(self) -> str:
        return os.path.basename(self.path.rstrip("/"))


def parse_place(text: str) -> Place:
    match = _VOLUME_PLACE.fullmatch(text)
    if match is None or text.startswith((".", "/")):
        return Place(volume=None, path=text)
    return Place(volume=match[1], path=(match[2] or "").lstrip("/"))


class Side(Protocol):
    """One side of a transfer. Paths are relative to its root and separated by /; "" is the root itself."""

    @property
    def keeps_times(self) -> bool:
        """See `Tree`."""

    def label(self, path: str) -> str:
        """The path in messages for users."""

    def entry(self, path: str) -> Entry | None:
        """Find an entry; None if the path does not exist."""

    def tree(self, path: str) -> Tree:
        """All entries below a directory; none if it does not exist."""

    def checksum(self, path: str, size: int) -> str: ...

    def make_directory(self, path: str) -> None: ...

    def delete(self, path: str) -> None:
        """Delete a file or an empty directory."""


class LocalSide:
    keeps_times = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def label(self, path: str) -> str:
        return str(self.at(path))

    def at(self, path: str) -> Path:
        return self.root / path if path else self.root

    def entry(self, path: str) -> Entry | None:
        with _readable():
            try:
                # A link that the user named is followed; links below it are not.
                return _entry_of(self.at(path).stat())
            except (FileNotFoundError, NotADirectoryError):
                return None

    def tree(self, path: str) -> Tree:
        found: dict[str, Entry] = {}
        top = self.at(path)
        with _readable():
            if top.is_dir():
                _walk(str(top), "", found)
        return Tree(entries=found)

    def checksum(self, path: str, size: int) -> str:
        with _readable(), self.at(path).open("rb", buffering=0) as file:
            return checksum_of(iter(lambda: file.read(_CHUNK_BYTES), b""))

    def make_directory(self, path: str) -> None:
        self.at(path).mkdir(parents=True, exist_ok=True)

    def delete(self, path: str) -> None:
        place = self.at(path)
        if place.is_dir() and not place.is_symlink():
            # Only files of interrupted downloads may still be in it.
            if all(is_unfinished(name) for name in os.listdir(place)):
                shutil.rmtree(place)
            else:
                place.rmdir()
        else:
            place.unlink(missing_ok=True)


class VolumeSide:
    def __init__(self, files: VolumeFiles, volume: VolumeView, root: str, persistence: Persistence) -> None:
        self.files = files
        self.volume = volume["id"]
        self.root = root.strip("/")
        self.is_bucket = volume["type"] == "object"
        self._name = volume["name"]
        self._persistence = persistence

    @property
    def keeps_times(self) -> bool:
        return not self.is_bucket

    def label(self, path: str) -> str:
        return f"{self._name}:/{self.at(path)}"

    def at(self, path: str) -> str:
        return "/".join(part for part in (self.root, path) if part)

    def entry(self, path: str) -> Entry | None:
        try:
            return _entry(self._persistence.keep_trying(lambda: self.files.stat(self.volume, self.at(path))))
        except NotFound as problem:
            # A missing file is an answer; a missing volume is an error.
            if problem.slug != "file-missing":
                raise
            return None

    def tree(self, path: str) -> Tree:
        top = self.at(path)
        listed = self._persistence.keep_trying(lambda: self._listed(top))
        below = f"{top}/" if top else ""
        entries = {view["path"].removeprefix(below): _entry(view) for view in listed}
        return Tree(entries=entries, keeps_times=self.keeps_times, keeps_directories=not self.is_bucket)

    def checksum(self, path: str, size: int) -> str:
        found = self._persistence.keep_trying(lambda: self.files.checksum(self.volume, self.at(path), size))
        return found["checksum"]

    def make_directory(self, path: str) -> None:
        self._persistence.keep_trying(lambda: self.files.make_directory(self.volume, self.at(path)))

    def delete(self, path: str) -> None:
        try:
            self._persistence.keep_trying(lambda: self.files.delete(self.volume, self.at(path)))
        except NotFound as problem:
            # An earlier try deleted it, but its answer got lost.
            if problem.slug != "file-missing":
                raise

    def _listed(self, path: str) -> list[VolumeFileView]:
        try:
            return list(self.files.list(self.volume, path, recursive=True))
        except NotFound as problem:
            if problem.slug != "file-missing":
                raise
            return []


@contextmanager
def _readable() -> Iterator[None]:
    """Unreadable directories are errors: a sync plan without their files would delete too much."""
    try:
        yield
    except OSError as error:
        raise PlaceRefused(f"{error.filename} cannot be read: {error.strerror}") from error


def _entry(view: VolumeFileView) -> Entry:
    kind: Kind = "dir" if view["kind"] == "dir" else "file" if view["kind"] == "file" else "other"
    if {"", ".", ".."} & set(view["path"].split("/")) and view["path"]:
        # A bucket can contain such names. On this machine they would lead to other directories.
        kind = "other"
    return Entry(kind=kind, size=view["size"], modified_ms=time_ms(view["modified_at"]))


def _walk(directory: str, prefix: str, found: dict[str, Entry]) -> None:
    with os.scandir(directory) as names:
        for each in names:
            if is_unfinished(each.name):
                continue
            entry = _entry_of(each.stat(follow_symlinks=False))
            if entry.kind == "file" and not _is_text(each.name):
                entry = Entry(kind="other")
            found[prefix + each.name] = entry
            if entry.kind == "dir":
                _walk(each.path, f"{prefix}{each.name}/", found)


def _entry_of(found: os.stat_result) -> Entry:
    if stat.S_ISDIR(found.st_mode):
        return Entry(kind="dir", modified_ms=found.st_mtime_ns // 1_000_000)
    if stat.S_ISREG(found.st_mode):
        return Entry(kind="file", size=found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)
    return Entry(kind="other")


def _is_text(name: str) -> bool:
    """Whether the name is valid Unicode, as the API requires; names of files are bytes."""
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)
