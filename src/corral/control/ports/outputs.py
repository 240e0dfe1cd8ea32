"""Port: the output directories of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class OutputMissing(Exception):
    """The file does not exist."""


class OutputRefused(Exception):
    """The file exists but cannot be read by the caller; the message gives the reason."""


class OutputKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    #: a link that leads out of the output directory, or nowhere
    LINK = "link"
    #: a device, a pipe or a socket
    OTHER = "other"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputEntry:
    """One name in a directory. A link that leads to something inside is shown as that."""

    name: str
    kind: OutputKind
    size_bytes: int
    modified_at: float


class OpenedOutput(Protocol):
    """A file or a directory that is held open: what is read is what was found, whatever happens to its name."""

    @property
    def is_directory(self) -> bool: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def modified_at(self) -> float: ...

    @property
    def tag(self) -> str:
        """An ETag: differs if the content differs."""

    def pieces(self, start: int, length: int) -> Iterator[bytes]:
        """A part of a file. Ends early if the file became shorter."""

    def members(self) -> Iterator[OutputMember]:
        """Everything below a directory, each directory before its contents. Each member must be read before the next
        one.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputMember:
    #: with those of the directories that it is in
    name: str
    is_directory: bool
    size_bytes: int
    modified_at: float
    #: where a link inside the directory leads to
    target: str | None
    pieces: Iterator[bytes]


class Outputs(Protocol):
    """Safe against everything that a job can do: nothing outside its output directory is ever opened."""

    def entries(
        self, job_id: str, path: Sequence[str], *, after: str | None, limit: int
    ) -> tuple[list[OutputEntry], str | None]:
        """A directory's entries by name, and after which name there are more. Raises OutputMissing or OutputRefused."""

    def open(self, job_id: str, path: Sequence[str]) -> OpenedOutput:
        """Raises OutputMissing or OutputRefused."""
