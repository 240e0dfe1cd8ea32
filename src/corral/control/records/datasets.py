"""Records of datasets: targets, versions, uses, and operations.

The bytes are elsewhere, in the storage of the dataset's target; what is here says which of them are a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from corral.control.records.sharing import Share

#: The target that is always there: corral's own store, and a directory of the server's.
DEFAULT_TARGET = "default"
#: Means the newest version; no tag is called so.
LATEST = "latest"
#: So many letters of a version's id are shown.
SHORT_LENGTH = 12


class MetadataKind(StrEnum):
    """The storage of the history of a target's datasets."""

    STORE = "store"
    GIT = "git"


class ByteStorage(StrEnum):
    """The storage of the bytes of a target's datasets."""

    DIRECTORY = "directory"
    OBJECT = "object"


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetTargetRecord:
    name: str
    metadata: MetadataKind = MetadataKind.STORE
    #: the URL of the repository, without a login
    git_url: str = ""
    git_branch: str = ""
    #: encrypted; never shown
    git_token: str = ""
    storage: ByteStorage = ByteStorage.DIRECTORY
    #: path of the directory on the server; "" for the built-in target, whose path is in the settings
    path: str = ""
    #: the object store, by its name, and where in it
    object_store: str = ""
    prefix: str = ""
    created_by: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRecord:
    id: str
    name: str
    owner: str
    target: str = DEFAULT_TARGET
    description: str = ""
    shares: tuple[Share, ...] = ()
    #: the newest version; None while it is empty
    head: str | None = None
    versions: int = 0
    #: what all its versions together added to the storage
    size_bytes: int = 0
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRecord:
    """A state of a dataset's files, for ever. Versions of a dataset are in one line."""

    dataset: str
    #: 64 digits, made from everything that it is
    id: str
    #: the version's place in the line, from 1 on
    number: int
    parent: str | None = None
    #: the id of what its files are
    tree: str
    message: str = ""
    author: str = ""
    at: float
    files: int = 0
    bytes: int = 0
    #: the bytes that no earlier version had
    new_bytes: int = 0
    #: the job whose output it is
    produced_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TagRecord:
    dataset: str
    tag: str
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetUse:
    """An attempt of a job read a version. Kept when the job is deleted."""

    job_id: str
    attempt: int
    dataset: str
    version: str
    job_name: str
    user: str
    at: float


class OperationKind(StrEnum):
    """Long work on datasets, done by a process of its own."""

    COMMIT = "commit"
    #: remove what no version needs
    COLLECT = "collect"
    #: read everything of a version, and compare it with its ids
    VERIFY = "verify"
    #: take over what a target's Git repository has
    PULL = "pull"


class OperationState(StrEnum):
    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (OperationState.READY, OperationState.FAILED)


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationRecord:
    id: str
    kind: OperationKind
    target: str
    #: None if it is about the whole target
    dataset: str | None = None
    state: OperationState = OperationState.WAITING
    #: what exactly is to be done, as plain data
    order: Mapping[str, Any] = field(default_factory=dict)
    #: what came of it
    result: Mapping[str, Any] | None = None
    error: str = ""
    created_by: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    #: how often it was begun: one over which the server dies again and again is given up
    starts: int = 0
