"""Versions of files: content-addressed, stored once, never changed, verified when they are read.

    repository = Repository(DirectoryBlobs("/data/blobs"), DirectoryVersions("/data/versions"))
    repository.commit("faces", Path("work"), message="first", author="ada")
    repository.checkout("faces", "latest", Path("copy"))

`BlobStore` and `VersionStore` are the two ports: the store of the bytes, and the store of the history. A server can
offer both over HTTP, so that a laptop commits with the same code; with `check_pack` it refuses packs whose content does
not match their index.
"""

from corral.datasets.content.blobs import BlobStore, DirectoryBlobs, FilesystemBlobs, StoredObject
from corral.datasets.content.packs import check_pack
from corral.datasets.errors import (
    AnotherOwner,
    BadName,
    Busy,
    Damaged,
    DatasetError,
    GitFailed,
    HeadMoved,
    LeaseLost,
    LocalChanges,
    NotFound,
    NotPlain,
    ObjectMissing,
    UnknownFormat,
    Unstable,
)
from corral.datasets.history.git_versions import GitVersions
from corral.datasets.history.records import Commit, Entry, PathEntry, check_dataset, check_tag
from corral.datasets.history.trees import Change, Diff
from corral.datasets.history.versions import DirectoryVersions, Manifest, VersionStore
from corral.datasets.repository import LATEST, Committed, Repository
from corral.datasets.work.garbage_collection import GarbagePack, GarbageReport, PartlyUsed
from corral.datasets.work.progress import OnProgress, Progress
from corral.datasets.work.verification import Damage, Verified

__all__ = [
    "LATEST",
    "AnotherOwner",
    "BadName",
    "BlobStore",
    "Busy",
    "Change",
    "Commit",
    "Committed",
    "Damage",
    "Damaged",
    "DatasetError",
    "Diff",
    "DirectoryBlobs",
    "DirectoryVersions",
    "Entry",
    "FilesystemBlobs",
    "GarbagePack",
    "GarbageReport",
    "GitFailed",
    "GitVersions",
    "HeadMoved",
    "LeaseLost",
    "LocalChanges",
    "Manifest",
    "NotFound",
    "NotPlain",
    "ObjectMissing",
    "OnProgress",
    "PartlyUsed",
    "PathEntry",
    "Progress",
    "Repository",
    "StoredObject",
    "UnknownFormat",
    "Unstable",
    "Verified",
    "VersionStore",
    "check_dataset",
    "check_pack",
    "check_tag",
]
