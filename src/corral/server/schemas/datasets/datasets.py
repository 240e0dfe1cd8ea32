"""API schemas: datasets, their versions and lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from corral.control.datasets.datasets import UsedBy
from corral.control.records import (
    DEFAULT_TARGET,
    SHORT_LENGTH,
    DatasetRecord,
    OperationRecord,
    Share,
    ShareKind,
    ShareMode,
    TagRecord,
    VersionRecord,
)
from corral.server.schemas.base import Body, Description, Label, Text, View, rfc3339, rfc3339_or_none

Message = Annotated[Text, Field(max_length=4000)]
VersionWord = Annotated[Text, Field(min_length=1, max_length=64)]
InnerPath = Annotated[Text, Field(max_length=4096)]


# ------------------------------------------------------------------------------------------------ requests


class DatasetCreate(Body):
    name: Label
    target: Label = Field(default=DEFAULT_TARGET, description="Target that the dataset is stored in.")
    description: Description = ""


class DatasetEdit(Body):
    description: Description


class DatasetShareBody(Body):
    kind: Literal["user", "group"]
    name: Label
    mode: Literal["ro", "rw"] = Field(default="ro", description="rw: may commit and tag.")


class DatasetSharesPut(Body):
    shares: Annotated[list[DatasetShareBody], Field(max_length=200)]


class TagPut(Body):
    version: VersionWord = Field(description="A tag, the first digits of an id (at least 4), or latest.")


class CommitSource(Body):
    """A directory of a volume, or of what a job wrote into its output directory."""

    volume: Label | None = Field(default=None, description="name, owner/name or id.")
    job: Label | None = Field(default=None, description="Name or id; the version is then recorded as made by this job.")
    path: InnerPath = Field(default="", description="Path of the directory within; empty: all of it.")

    @model_validator(mode="after")
    def _one(self) -> CommitSource:
        if (self.volume is None) == (self.job is None):
            raise ValueError("give either volume or job")
        return self


# ------------------------------------------------------------------------------------------------ answers


class DatasetShareView(View):
    kind: Literal["user", "group"]
    name: str
    mode: Literal["ro", "rw"]


class LineageJobView(View):
    """A job in a dataset's lineage; the job may have been deleted."""

    id: str
    name: str | None = Field(description="null if the job was deleted, or the caller may not see it.")
    user: str | None
    attempts: list[int] = Field(description="Versions that the job used; empty for the job that made the version.")
    last_at: str | None


class VersionView(View):
    id: str
    short: str
    number: int = Field(description="Number in the history, beginning with 1.")
    message: str
    author: str
    at: str
    parent: str | None
    files: int
    bytes: int
    new_bytes: int = Field(description="Bytes that this version added to the storage.")
    tree: str
    produced_by: str | None = Field(description="Id of the job that made this version.")
    tags: list[str]


class DatasetView(View):
    id: str
    name: str
    owner: str
    target: str
    description: str
    versions: int
    latest: VersionView | None
    tags: dict[str, str] = Field(description="Tag to version.")
    size_bytes: int = Field(description="Bytes that all versions take together.")
    shares: list[DatasetShareView] = Field(description="Shown to its owner and to operators only.")
    mine: bool
    may_write: bool
    created_at: str


class TagView(View):
    tag: str
    version: str


class VersionLineageView(View):
    version: str
    short: str
    tags: list[str]
    message: str
    at: str
    produced_by: LineageJobView | None
    used_by: list[LineageJobView]


class LineageView(View):
    dataset: str
    name: str
    #: the newest version first
    versions: list[VersionLineageView]
    next_cursor: str | None = None


class JobDatasetView(View):
    """A version that a job used or made."""

    dataset: str
    name: str | None = Field(description="null if the dataset was deleted, or the caller may not see it.")
    owner: str | None
    version: str
    short: str
    attempts: list[int]
    at: str


class JobLineageView(View):
    job: str
    used: list[JobDatasetView]
    produced: list[JobDatasetView]
    commits: list[OperationView] = Field(
        description="Commits of the job's files, the newest first, also unfinished ones."
    )


class OperationProgressView(View):
    phase: str
    fraction: float | None
    done_files: int
    done_bytes: int
    total_files: int | None
    total_bytes: int | None


class OperationView(View):
    """A long operation on datasets: a commit, a verification, a pull or a garbage collection."""

    id: str
    kind: Literal["commit", "collect", "verify", "pull"]
    target: str
    dataset: str | None
    state: Literal["waiting", "working", "ready", "failed"]
    progress: OperationProgressView | None = Field(description="Set while the operation is working.")
    version: str | None = Field(description="The version that a commit made, or that is verified.")
    result: dict[str, Any] | None = Field(description="The result, once the operation is ready.")
    error: str
    created_by: str
    created_at: str
    started_at: str | None
    ended_at: str | None


# ------------------------------------------------------------------------------------------------ conversion


def shares_of(body: DatasetSharesPut) -> list[Share]:
    return [Share(kind=ShareKind(share.kind), name=share.name, mode=ShareMode(share.mode)) for share in body.shares]


def version_view(version: VersionRecord, tags: Sequence[TagRecord]) -> VersionView:
    return VersionView(
        id=version.id,
        short=version.id[:SHORT_LENGTH],
        number=version.number,
        message=version.message,
        author=version.author,
        at=rfc3339(version.at),
        parent=version.parent,
        files=version.files,
        bytes=version.bytes,
        new_bytes=version.new_bytes,
        tree=version.tree,
        produced_by=version.produced_by,
        tags=[tag.tag for tag in tags if (tag.dataset, tag.version) == (version.dataset, version.id)],
    )


def dataset_view(
    dataset: DatasetRecord,
    *,
    head: VersionRecord | None,
    tags: Sequence[TagRecord],
    is_mine: bool,
    may_write: bool,
    sees_shares: bool,
) -> DatasetView:
    own = [tag for tag in tags if tag.dataset == dataset.id]
    shares = [
        DatasetShareView(kind=share.kind.value, name=share.name, mode=share.mode.value) for share in dataset.shares
    ]
    return DatasetView(
        id=dataset.id,
        name=dataset.name,
        owner=dataset.owner,
        target=dataset.target,
        description=dataset.description,
        versions=dataset.versions,
        latest=None if head is None else version_view(head, own),
        tags={tag.tag: tag.version for tag in own},
        size_bytes=dataset.size_bytes,
        shares=shares if sees_shares else [],
        mine=is_mine,
        may_write=may_write,
        created_at=rfc3339(dataset.created_at),
    )


def lineage_job_view(used: UsedBy, *, is_hidden: bool) -> LineageJobView:
    return LineageJobView(
        id=used.job_id,
        name=None if is_hidden else used.job_name,
        user=None if is_hidden else used.user,
        attempts=list(used.attempts),
        last_at=rfc3339(used.last_at),
    )


def operation_view(operation: OperationRecord, progress: Mapping[str, Any] | None = None) -> OperationView:
    result = operation.result or {}
    return OperationView(
        id=operation.id,
        kind=operation.kind.value,
        target=operation.target,
        dataset=operation.dataset,
        state=operation.state.value,
        progress=None if progress is None else OperationProgressView(**progress),
        version=result.get("version") or operation.order.get("version"),
        result=None if operation.result is None else dict(operation.result),
        error=operation.error,
        created_by=operation.created_by,
        created_at=rfc3339(operation.created_at),
        started_at=rfc3339_or_none(operation.started_at),
        ended_at=rfc3339_or_none(operation.ended_at),
    )
