"""Datasets, their versions, targets and lineage.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict


class CollectionCreate(TypedDict):
    #: Only report what would be removed.
    dry_run: NotRequired[bool]
    #: Newer objects are kept: a commit that is not finished may need them.
    grace_seconds: NotRequired[float]


class CommitSource(TypedDict):
    """A directory of a volume, or of what a job wrote into its output directory."""

    #: Name or id; the version is then recorded as made by this job.
    job: NotRequired[str | None]
    #: Path of the directory within; empty: all of it.
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
    #: Target that the dataset is stored in.
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
    """A directory that the server can reach, and the nodes too if they are other machines."""

    kind: Literal["directory"]
    path: str


class GitMetadataBody(TypedDict):
    """History in a Git repository, where plain git can read it."""

    kind: Literal["git"]
    #: Address of the repository, without user name and password.
    url: str
    branch: NotRequired[str]
    #: Token to push over HTTPS. Stored encrypted and never shown again.
    token: NotRequired[str]


class ObjectStorageBody(TypedDict):
    """A bucket, or a part of one."""

    kind: Literal["object"]
    #: Name of the object store: `corral object-store ls`.
    object_store: str
    prefix: NotRequired[str]


class StoreMetadataBody(TypedDict):
    """History in corral's own store."""

    kind: Literal["store"]


class DatasetTargetCreate(TypedDict):
    name: str
    storage: DirectoryBody | ObjectStorageBody
    metadata: NotRequired[StoreMetadataBody | GitMetadataBody]


class DatasetTargetEdit(TypedDict):
    """Changes to a target. Fields that are left out keep their values. If the target has datasets, only the address and
    the token of its repository can be changed."""

    storage: NotRequired[DirectoryBody | ObjectStorageBody | None]
    #: A new token; empty: no token.
    token: NotRequired[str | None]
    #: New address of the same repository.
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
    #: Number of datasets of this target.
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
    #: Number in the history, beginning with 1.
    number: int
    message: str
    author: str
    at: str
    parent: str | None
    files: int
    bytes: int
    #: Bytes that this version added to the storage.
    new_bytes: int
    tree: str
    #: Id of the job that made this version.
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
    #: Bytes that all versions take together.
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
    #: Whether there are more changes than are shown.
    truncated: bool


class JobDatasetView(TypedDict):
    """A version that a job used or made."""

    dataset: str
    #: null if the dataset was deleted, or the caller may not see it.
    name: str | None
    owner: str | None
    version: str
    short: str
    attempts: list[int]
    at: str


class OperationProgressView(TypedDict):
    phase: str
    fraction: float | None
    done_files: int
    done_bytes: int
    total_files: int | None
    total_bytes: int | None


class OperationView(TypedDict):
    """A long operation on datasets: a commit, a verification, a pull or a garbage collection."""

    id: str
    kind: Literal["commit", "collect", "verify", "pull"]
    target: str
    dataset: str | None
    state: Literal["waiting", "working", "ready", "failed"]
    #: Set while the operation is working.
    progress: OperationProgressView | None
    #: The version that a commit made, or that is verified.
    version: str | None
    #: The result, once the operation is ready.
    result: dict[str, Any] | None
    error: str
    created_by: str
    created_at: str
    started_at: str | None
    ended_at: str | None


class JobLineageView(TypedDict):
    job: str
    used: list[JobDatasetView]
    produced: list[JobDatasetView]
    #: Commits of the job's files, the newest first, also unfinished ones.
    commits: list[OperationView]


class LengthsView(TypedDict):
    #: In the order of the ids; null if the object is damaged or lost.
    lengths: list[int | None]


class LineageJobView(TypedDict):
    """A job in a dataset's lineage; the job may have been deleted."""

    id: str
    #: null if the job was deleted, or the caller may not see it.
    name: str | None
    user: str | None
    #: Versions that the job used; empty for the job that made the version.
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
    #: Size of a file in bytes; null for others.
    size: int | None
    executable: bool
    #: Target of a link; null for others.
    target: str | None
    #: Id of the content.
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
