"""API schemas: A job's files and matches in its logs."""

from __future__ import annotations

from pydantic import Field

from corral.control.ports import OutputEntry, OutputKind
from corral.server.jobs.line_scan import Match
from corral.server.schemas.base import View, rfc3339


class FileView(View):
    name: str
    path: str = Field(description="Path relative to the output directory.")
    kind: OutputKind = Field(
        description="`link`: a link to a place outside of the output directory; it cannot be downloaded."
    )
    is_dir: bool
    size_bytes: int
    modified_at: str


class LogMatchView(View):
    attempt: int
    rank: int
    line: int = Field(description="Number of the line, counted from the oldest line that is kept.")
    offset: int = Field(description="The byte of the log at which the line begins.")
    text: str = Field(description="The line; of a long line, the part around the match.")


def file_view(entry: OutputEntry, parents: list[str]) -> FileView:
    name = shown(entry.name)
    return FileView(
        name=name,
        path="/".join([*parents, name]),
        kind=entry.kind,
        is_dir=entry.kind is OutputKind.DIRECTORY,
        size_bytes=entry.size_bytes,
        modified_at=rfc3339(entry.modified_at),
    )


def match_view(match: Match, attempt: int, rank: int) -> LogMatchView:
    return LogMatchView(attempt=attempt, rank=rank, line=match.line, offset=match.offset, text=match.text)


def shown(name: str) -> str:
    """File names are bytes; bytes that are not valid text are escaped."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
