"""API schemas: files of versions, differences between versions, and pieces."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corral.datasets.history.records import Entry
from corral.datasets.history.trees import Change, Diff
from corral.server.schemas.base import Body, Label, View
from corral.server.schemas.datasets.datasets import CommitSource, Message, VersionWord

Digits = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

#: Ids in one request, and changes in one answer.
MOST_IDS = 10_000
MOST_CHANGES = 1000


class CommitCreate(Body):
    source: CommitSource | None = Field(default=None, alias="from", description="The directory that the server reads.")
    tree: Digits | None = Field(default=None, description="The tree of files whose objects were sent before.")
    message: Message = ""
    parent: VersionWord | None = Field(
        default=None, description="Refused if the newest version is another one; null: the newest version."
    )
    produced_by: Label | None = Field(default=None, description="The job that made the version: its id or name.")

    @model_validator(mode="after")
    def _one(self) -> CommitCreate:
        if (self.source is None) == (self.tree is None):
            raise ValueError("give either from or tree")
        return self


class CollectionCreate(Body):
    dry_run: bool = Field(default=True, description="Only report what would be removed.")
    grace_seconds: Annotated[float, Field(ge=0, le=31_536_000)] = Field(
        default=86_400.0, description="Newer objects are kept: a commit that is not finished may need them."
    )


class ObjectIds(Body):
    ids: Annotated[list[Digits], Field(max_length=MOST_IDS)]


class MissingView(View):
    missing: list[str]


class LengthsView(View):
    lengths: list[int | None] = Field(description="In the order of the ids; null if the object is damaged or lost.")


class ObjectTakenView(View):
    id: str
    bytes: int


class VersionFileView(View):
    name: str
    path: str
    kind: Literal["file", "dir", "link"]
    size: int | None = Field(description="Size of a file in bytes; null for others.")
    executable: bool
    target: str | None = Field(description="Target of a link; null for others.")
    digest: str | None = Field(description="Id of the content.")


class FileChangeView(View):
    path: str
    size: int | None
    old_size: int | None


class DiffView(View):
    from_version: str | None
    to_version: str
    added: list[FileChangeView]
    removed: list[FileChangeView]
    changed: list[FileChangeView]
    added_count: int
    removed_count: int
    changed_count: int
    bytes_added: int
    bytes_removed: int
    truncated: bool = Field(description="Whether there are more changes than are shown.")


def file_view(entry: Entry, folder: str) -> VersionFileView:
    name = entry.name.encode("utf-8", "replace").decode()
    return VersionFileView(
        name=name,
        path=f"{folder}/{name}" if folder else name,
        kind=entry.kind,
        size=entry.size if entry.kind == "file" else None,
        executable=entry.executable,
        target=entry.target.encode("utf-8", "replace").decode() if entry.kind == "link" else None,
        digest=entry.digest.hex() if entry.digest else None,
    )


def diff_view(found: Diff, old: str | None, new: str) -> DiffView:
    kinds = (found.added, found.removed, found.changed)
    return DiffView(
        from_version=old,
        to_version=new,
        added=_changes(found.added),
        removed=_changes(found.removed),
        changed=_changes(found.changed),
        added_count=len(found.added),
        removed_count=len(found.removed),
        changed_count=len(found.changed),
        bytes_added=found.bytes_added,
        bytes_removed=found.bytes_removed,
        truncated=any(len(changes) > MOST_CHANGES for changes in kinds),
    )


def _changes(changes: tuple[Change, ...]) -> list[FileChangeView]:
    return [
        FileChangeView(path=change.path.encode("utf-8", "replace").decode(), size=change.size, old_size=change.old_size)
        for change in changes[:MOST_CHANGES]
    ]
