"""Datasets, their versions, targets and lineage.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict


class CollectionCreate(TypedDict):
    #: Only say what would go.
    dry_run: NotRequired[bool]
    #: What is newer stays: somebody may be about to commit it.
    grace_seconds: NotRequired[float]


class CommitSource(TypedDict):
    """A directory of a volume, or of what a job wrote into its output directory."""

    #: name or id; the version then is known as made by it.
    job: NotRequired[str | None]
    #: The directory within; empty: all of it.
    path: NotRequired[str]
    #: name, owner/name or id.
    volume: NotRequired[str | None]


CommitCreate = TypedDict(
    "CommitCreate",
    {
        "from": NotRequired[CommitSource | None],
        "message": NotRequired[str],
        "parent": NotRequired[str | None],
        "produced_by": NotRequired[str | None],
        "tree": NotRequired[str | None],
    },
)


class DatasetCreate(TypedDict):
    name: str
    description: NotRequired[str]
    #: Where it is kept.
    target: NotRequired[str]


class DatasetEdit(TypedDict):
    description: str


class DatasetShareBody(TypedDict):
    kind: Literal["user", "group"]
    name: str
    #: rw: may commit and tag.
    mode: NotRequired[Literal["ro", "rw"]]


class DatasetSharesPut(TypedDict):
    shares: list[DatasetShareBody]


class DirectoryBody(TypedDict):
    """A directory that the server sees; nodes too, where they are other machines."""

    kind: Literal["directory"]
    path: str


class GitMetadataBody(TypedDict):
    """In a Git repository, where plain git can read it."""

    kind: Literal["git"]
    #: Of a repository; without a login in it.
    url: str
    branch: NotRequired[str]
    #: To push with, over HTTPS. Kept encrypted and never shown again.
    token: NotRequired[str]


class ObjectStorageBody(TypedDict):
    """A bucket, or a part of one."""

    kind: Literal["object"]
    #: By its name: `corral object-store ls`.
    object_store: str
    prefix: NotRequired[str]


class StoreMetadataBody(TypedDict):
    """In corral's own store."""

    kind: Literal["store"]


class DatasetTargetCreate(TypedDict):
    name: str
    storage: DirectoryBody | ObjectStorageBody
    metadata: NotRequired[StoreMetadataBody | GitMetadataBody]


class DatasetTargetEdit(TypedDict):
    """What may be changed; what is left out stays as it is. While there are datasets: a repository's token only."""

    storage: NotRequired[DirectoryBody | ObjectStorageBody | None]
    #: Another one; empty: none.
    token: NotRequired[str | None]
    #: Where the same repository is now.
    url: NotRequired[str | None]


class MetadataView(TypedDict):
    kind: Literal["store", "git"]
    url: str | None
    branch: str | None
    has_token: bool


class StorageView(TypedDict):
    kind: Literal["directory", "object"]
    #: Shown to operators only.
    path: str | None
    object_store: str | None
    prefix: str | None


class DatasetTargetView(TypedDict):
    name: str
    metadata: MetadataView
    storage: StorageView
    built_in: bool
    #: How many are kept through it.
    datasets: int
    created_by: str
    created_at: str | None


class DatasetShareView(TypedDict):
    kind: Literal["user", "group"]
    name: str
    mode: Literal["ro", "rw"]


class VersionView(TypedDict):
    id: str
    short: str
    #: Its place in the history, from 1 on.
    number: int
    message: str
    author: str
    at: str
    parent: str | None
    files: int
    bytes: int
    #: What it added to the storage.
    new_bytes: int
    tree: str
    #: The id of the job that made it.
    produced_by: str | None
    tags: list[str]


class DatasetView(TypedDict):
    id: str
    name: str
    owner: str
    target: str
    description: str
    versions: int
    latest: VersionView | None
    #: Tag to version.
    tags: dict[str, str]
    #: What all its versions together take.
    size_bytes: int
    #: Shown to its owner and to operators only.
    shares: list[DatasetShareView]
    mine: bool
    may_write: bool
    created_at: str


class FileChangeView(TypedDict):
    path: str
    size: int | None
    old_size: int | None


class DiffView(TypedDict):
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
    #: Whether there are more than are shown.
    truncated: bool


class ErrandProgressView(TypedDict):
    phase: str
    fraction: float | None
    done_files: int
    done_bytes: int
    total_files: int | None
    total_bytes: int | None


class ErrandView(TypedDict):
    """Long work on datasets: a commit, a verification, a collection of garbage."""

    id: str
    kind: Literal["commit", "collect", "verify", "pull"]
    target: str
    dataset: str | None
    state: Literal["waiting", "working", "ready", "failed"]
    #: While it is working.
    progress: ErrandProgressView | None
    #: The version that a commit made, or that is verified.
    version: str | None
    #: What came of it, once it is ready.
    result: dict[str, Any] | None
    error: str
    created_by: str
    created_at: str
    started_at: str | None
    ended_at: str | None


class JobDatasetView(TypedDict):
    """A version that a job used or made."""

    dataset: str
    #: null if the dataset is gone, or the caller does not see it.
    name: str | None
    owner: str | None
    version: str
    short: str
    attempts: list[int]
    at: str


class JobLineageView(TypedDict):
    job: str
    used: list[JobDatasetView]
    produced: list[JobDatasetView]


class LengthsView(TypedDict):
    #: In the order of the ids; null for one that is damaged or lost.
    lengths: list[int | None]


class LineageJobView(TypedDict):
    """A job in a dataset's lineage; it may be deleted by now."""

    id: str
    #: null if it is gone, or the caller may not see it.
    name: str | None
    user: str | None
    #: Those that used it; empty for the job that made it.
    attempts: list[int]
    last_at: str | None


class VersionLineageView(TypedDict):
    version: str
    short: str
    tags: list[str]
    message: str
    at: str
    produced_by: LineageJobView | None
    used_by: list[LineageJobView]


class LineageView(TypedDict):
    dataset: str
    name: str
    versions: list[VersionLineageView]
    next_cursor: NotRequired[str | None]


class VersionFileView(TypedDict):
    name: str
    path: str
    kind: Literal["file", "dir", "link"]
    #: Of a file.
    size: int | None
    executable: bool
    #: Of a link.
    target: str | None
    #: What it holds, by its id.
    digest: str | None


class MissingView(TypedDict):
    missing: list[str]


class ObjectIds(TypedDict):
    ids: list[str]


class ObjectTakenView(TypedDict):
    id: str
    bytes: int


class TagPut(TypedDict):
    #: A tag, the first digits of an id (at least 4), or latest.
    version: str


class TagView(TypedDict):
    tag: str
    version: str


class TargetTestView(TypedDict):
    ok: bool
    detail: str
