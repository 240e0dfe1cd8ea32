"""Records of volumes, their shares, and object stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from corral.control.records.sharing import Share
from corral.core.storage.volumes import Volume, VolumeType


class VolumeState(StrEnum):
    #: known, and not made yet
    CREATING = "creating"
    READY = "ready"
    #: no job can mount it any more; it is deleted as soon as its files are removed
    DELETING = "deleting"
    #: it could not be made; that is tried again
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeRecord:
    id: str
    name: str
    owner: str
    type: VolumeType
    cluster: str = "local"
    #: what it may hold; 0 for a bucket, which has no limit here
    size_bytes: int = 0
    #: None until it was measured
    used_bytes: int | None = None
    measured_at: float | None = None
    #: for a bucket: how it is reached, and the part of it that this volume is
    object_store: str | None = None
    prefix: str = ""
    state: VolumeState = VolumeState.CREATING
    #: the error message
    message: str = ""
    shared: tuple[Share, ...] = ()
    created_at: float = 0.0
    #: read-only for all users, also for its owner
    read_only: bool = False
    #: what the volume is for
    description: str = ""

    @property
    def is_full(self) -> bool:
        return bool(self.size_bytes) and self.used_bytes is not None and self.used_bytes >= self.size_bytes

    @property
    def snapshot_volume(self) -> Volume:
        """The fields of the volume that the scheduler needs."""
        return Volume(
            id=self.id,
            name=self.name,
            owner=self.owner,
            type=self.type,
            cluster=self.cluster,
            is_full=self.is_full,
            not_ready=_NOT_READY.get(self.state, ""),
        )


_NOT_READY = {
    VolumeState.CREATING: "is being made",
    VolumeState.FAILED: "could not be made yet",
    VolumeState.DELETING: "is being deleted",
}


class ObjectStoreKind(StrEnum):
    S3 = "s3"
    GCS = "gcs"


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectStoreRecord:
    """A bucket, or a part of one, that volumes can be made of."""

    name: str
    kind: ObjectStoreKind
    bucket: str
    #: None means the provider's own
    endpoint: str | None = None
    region: str = ""
    prefix: str = ""
    access_key: str = ""
    #: encrypted; "" means access without a login
    secret: str = field(default="", repr=False)
    allow_write: bool = False
    created_at: float = 0.0
