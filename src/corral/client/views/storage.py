"""Volumes, their files and object stores.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Literal, NotRequired, TypedDict

from corral.client.views.jobs import JobState


class ChecksumView(TypedDict):
    path: str
    algorithm: str
    checksum: str
    size: int
    #: Size of the content that the checksum was computed of.
    etag: str


ObjectStoreKind = Literal["s3", "gcs"]


class ObjectStoreView(TypedDict):
    name: str
    kind: ObjectStoreKind
    bucket: str
    allow_write: bool
    #: This field and the following ones are shown to operators only; for others they are empty.
    endpoint: str | None
    region: str
    prefix: str
    access_key: str
    has_secret: bool
    #: Number of volumes in this object store.
    volumes: int
    created_at: str


FileKind = Literal["file", "dir", "other"]


class VolumeFileView(TypedDict):
    #: Path relative to the volume's root.
    path: str
    #: `other`: a link to a place outside of the volume, a device, or a name that is not valid text.
    kind: FileKind
    size: int
    modified_at: str


class VolumeJobView(TypedDict):
    """A live job that mounts a volume."""

    id: str
    name: str
    user: str
    state: JobState
    mode: str
    #: Shown to the job's owner and to operators only.
    path: str


ShareKind = Literal["user", "group"]


ShareMode = Literal["ro", "rw"]


class VolumeShareView(TypedDict):
    kind: ShareKind
    name: str
    mode: ShareMode


VolumeState = Literal["creating", "ready", "deleting", "failed"]


VolumeType = Literal["block", "filesystem", "local", "object"]


class VolumeView(TypedDict):
    id: str
    name: str
    owner: str
    type: VolumeType
    cluster: str
    #: Capacity; 0 for a bucket, which has no limit here.
    size_bytes: int
    #: Null until the use was measured.
    used_bytes: int | None
    measured_at: str | None
    #: Jobs that would write to the volume do not start.
    full: bool
    state: VolumeState
    message: str
    read_only: bool
    object_store: str | None
    prefix: str
    description: str
    #: Shown to its owner and to operators only.
    shares: list[VolumeShareView]
    #: Whether the caller may write.
    may_write: bool
    mine: bool
    created_at: str
    #: Live jobs that mount the volume and that the caller may see.
    jobs: list[VolumeJobView]


class ObjectStoreCreate(TypedDict):
    name: str
    #: s3: S3 and compatible services, such as MinIO.
    kind: Literal["s3", "gcs"]
    bucket: str
    #: Access key of S3.
    access_key: NotRequired[str]
    #: Whether jobs may write to it.
    allow_write: NotRequired[bool]
    #: Null: the provider's default.
    endpoint: NotRequired[str | None]
    #: Prefix of the bucket that can be used.
    prefix: NotRequired[str]
    region: NotRequired[str]
    #: For S3 the secret key, for GCS the account's key as JSON. Stored encrypted, never shown.
    secret: NotRequired[str]


class ObjectStoreEdit(TypedDict):
    """Changes to the access to a bucket. Fields that are left out keep their values."""

    access_key: NotRequired[str]
    allow_write: NotRequired[bool]
    endpoint: NotRequired[str | None]
    region: NotRequired[str]
    secret: NotRequired[str]


class ObjectStoreTestView(TypedDict):
    ok: bool
    detail: str
    #: Names directly below the prefix.
    objects_seen: int


class UploadComplete(TypedDict):
    #: blake2b-256, in hexadecimal digits.
    checksum: str


class UploadCreate(TypedDict):
    #: Path relative to the volume's root.
    path: str
    size: int
    #: Checksum of the whole file, if it is known already.
    checksum: NotRequired[str | None]
    #: The file's modification time; null: the time at which the upload is completed.
    modified_at: NotRequired[str | None]
    #: Size of every part except the last. There may be 100000 parts.
    part_bytes: NotRequired[int]


class UploadView(TypedDict):
    id: str
    path: str
    size: int
    part_bytes: int
    #: Numbers of the parts, beginning with 0.
    parts: int
    #: Parts that were received already.
    have: list[int]


class VolumeCreate(TypedDict):
    name: str
    #: block: one writer or many readers. filesystem: many of both. object: a part of a bucket.
    type: Literal["block", "filesystem", "object"]
    #: Null: the only cluster.
    cluster: NotRequired[str | None]
    #: Purpose of the volume.
    description: NotRequired[str]
    #: For an object volume: the object store.
    object_store: NotRequired[str | None]
    #: For an object volume: the prefix in the bucket.
    prefix: NotRequired[str]
    #: Capacity; required for block and filesystem.
    size: NotRequired[float | str]


class VolumeEdit(TypedDict):
    """Changes to a volume. Fields that are left out keep their values."""

    #: Purpose of the volume.
    description: NotRequired[str | None]
    #: A volume can only grow.
    size: NotRequired[float | str | None]


class VolumeShareBody(TypedDict):
    kind: Literal["user", "group"]
    name: str
    mode: NotRequired[Literal["ro", "rw"]]


class VolumeSharesPut(TypedDict):
    #: The complete list of users and groups that the volume is shared with.
    shares: list[VolumeShareBody]
