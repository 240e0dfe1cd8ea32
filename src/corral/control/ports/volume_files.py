"""Port: the files of one volume, for lists, downloads and uploads outside of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class FileMissing(Exception):
    """The file does not exist."""


class FileRefused(Exception):
    """The file or its directory exists but cannot be used as asked; the message gives the reason."""


class FilesUnavailable(Exception):
    """The storage cannot be reached at this moment; the message says why."""


class FileKind(StrEnum):
    FILE = "file"
    DIRECTORY = "dir"
    #: a link that leads out or nowhere, a device, a pipe, a socket, or a name that is no text
    OTHER = "other"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    #: from the volume's root on
    path: str
    kind: FileKind
    size_bytes: int
    #: whole milliseconds since the epoch: what survives the way through JSON, and back
    modified_ms: int


class OpenedFile(Protocol):
    """Held open: what is read is what was found, whatever happens to its name."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def modified_ms(self) -> int: ...

    @property
    def tag(self) -> str:
        """An ETag, with quotes: differs if the content differs."""

    def pieces(self, start: int, length: int) -> Iterator[bytes]:
        """A part of it. Ends early if it became shorter."""

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedFile:
    """A whole and verified file that waits for its name."""

    #: an open directory, and the file's name in it
    directory: int
    name: str
    #: the same as a path, for storages that only take paths
    path: str
    size_bytes: int
    modified_ms: int | None


class VolumeFiles(Protocol):
    """Safe against everything that a job can do to its volume: nothing outside of it is read or written. Every path
    is the sequence of names on the way; methods raise FileMissing, FileRefused or FilesUnavailable."""

    #: whether a file keeps the time that it is given
    keeps_times: bool

    def listed(
        self, path: Sequence[str], *, recursive: bool, after: Sequence[str] | None, limit: int
    ) -> tuple[list[StoredFile], Sequence[str] | None]:
        """Lists a directory in a fixed order; the second value is the path after which the next page begins. A link to
        something inside is listed as its target; a recursive listing does not follow links.
        """

    def stat(self, path: Sequence[str]) -> StoredFile: ...

    def open(self, path: Sequence[str]) -> OpenedFile: ...

    def make_directory(self, path: Sequence[str]) -> StoredFile:
        """Creates a directory and its missing parents; an existing one is left as it is."""

    def publish(self, staged: StagedFile, path: Sequence[str]) -> StoredFile:
        """Give a staged file its name, in one step: who looks sees what was there before, or all of it."""

    def delete(self, path: Sequence[str], *, recursive: bool) -> None:
        """A link is deleted, never what it leads to."""
