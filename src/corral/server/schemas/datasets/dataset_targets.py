"""API schemas: targets of datasets. A token is accepted, but never returned."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.records import DEFAULT_TARGET, ByteStorage, DatasetTargetRecord, MetadataKind
from corral.server.schemas.base import Body, Label, Text, View, rfc3339

Address = Annotated[Text, Field(min_length=1, max_length=1000)]
Token = Annotated[Text, Field(max_length=8192)]
Path = Annotated[Text, Field(min_length=1, max_length=1000)]
Prefix = Annotated[Text, Field(max_length=500)]

DEFAULT_BRANCH = "main"


class StoreMetadataBody(Body):
    """History in corral's own store."""

    kind: Literal["store"]


class GitMetadataBody(Body):
    """History in a Git repository, where plain git can read it."""

    kind: Literal["git"]
    url: Address = Field(description="Address of the repository, without user name and password.")
    branch: Label = DEFAULT_BRANCH
    token: Token = Field(default="", description="Token to push over HTTPS. Stored encrypted and never shown again.")


class DirectoryBody(Body):
    """A directory that the server can reach, and the nodes too if they are other machines."""

    kind: Literal["directory"]
    path: Path


class ObjectStorageBody(Body):
    """A bucket, or a part of one."""

    kind: Literal["object"]
    object_store: Label = Field(description="Name of the object store: `corral object-store ls`.")
    prefix: Prefix = ""


MetadataBody = Annotated[StoreMetadataBody | GitMetadataBody, Field(discriminator="kind")]
StorageBody = Annotated[DirectoryBody | ObjectStorageBody, Field(discriminator="kind")]


class DatasetTargetCreate(Body):
    name: Label
    metadata: MetadataBody = Field(default_factory=lambda: StoreMetadataBody(kind="store"))
    storage: StorageBody


class DatasetTargetEdit(Body):
    """Changes to a target. Fields that are left out keep their values. If the target has datasets, only the address and
    the token of its repository can be changed."""

    url: Address | None = Field(default=None, description="New address of the same repository.")
    token: Token | None = Field(default=None, description="A new token; empty: no token.")
    storage: StorageBody | None = None


class MetadataView(View):
    kind: Literal["store", "git"]
    url: str | None
    branch: str | None
    has_token: bool


class StorageView(View):
    kind: Literal["directory", "object"]
    path: str | None = Field(description="Shown to operators only.")
    object_store: str | None
    prefix: str | None


class DatasetTargetView(View):
    name: str
    metadata: MetadataView
    storage: StorageView
    built_in: bool
    datasets: int = Field(description="Number of datasets of this target.")
    created_by: str
    created_at: str | None


class TargetTestView(View):
    ok: bool
    detail: str


def target_record(body: DatasetTargetCreate, token: str) -> DatasetTargetRecord:
    """The body with its token encrypted."""
    values: dict[str, Any] = _storage_values(body.storage)
    if isinstance(body.metadata, GitMetadataBody):
        values |= {
            "metadata": MetadataKind.GIT,
            "git_url": body.metadata.url,
            "git_branch": body.metadata.branch,
            "git_token": token,
        }
    return DatasetTargetRecord(name=body.name, **values)


def target_changes(body: DatasetTargetEdit, token: str | None) -> dict[str, Any]:
    changes: dict[str, Any] = {} if body.storage is None else _storage_values(body.storage)
    if body.url is not None:
        changes["git_url"] = body.url
    if token is not None:
        changes["git_token"] = token
    return changes


def _storage_values(body: DirectoryBody | ObjectStorageBody) -> dict[str, Any]:
    if isinstance(body, DirectoryBody):
        return {"storage": ByteStorage.DIRECTORY, "path": body.path, "object_store": "", "prefix": ""}
    return {
        "storage": ByteStorage.OBJECT,
        "path": "",
        "object_store": body.object_store,
        "prefix": body.prefix.strip("/"),
    }


def target_view(target: DatasetTargetRecord, *, path: str, datasets: int, is_operator: bool) -> DatasetTargetView:
    """`path` is the directory's real path, which is shown to operators only."""
    in_git = target.metadata is MetadataKind.GIT
    is_bucket = target.storage is ByteStorage.OBJECT
    return DatasetTargetView(
        name=target.name,
        metadata=MetadataView(
            kind=target.metadata.value,
            url=target.git_url if in_git else None,
            branch=target.git_branch if in_git else None,
            has_token=bool(target.git_token),
        ),
        storage=StorageView(
            kind=target.storage.value,
            path=path if is_operator and not is_bucket else None,
            object_store=target.object_store if is_bucket else None,
            prefix=target.prefix if is_bucket else None,
        ),
        built_in=target.name == DEFAULT_TARGET,
        datasets=datasets,
        created_by=target.created_by,
        created_at=rfc3339(target.created_at) if target.created_at else None,
    )
