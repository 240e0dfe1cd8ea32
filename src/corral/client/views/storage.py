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
    #: Of the content that the checksum was made of.
    etag: str


ObjectStoreKind = Literal["s3", "gcs"]


class ObjectStoreView(TypedDict):
    name: str
    kind: ObjectStoreKind
    bucket: str
    allow_write: bool
    #: From here on for operators only; others see them empty.
    endpoint: str | None
    region: str
    prefix: str
    access_key: str
    has_secret: bool
    #: How many volumes are parts of it.
    volumes: int
    created_at: str


FileKind = Literal["file", "dir", "other"]


class VolumeFileView(TypedDict):
    #: From the volume's root on.
    path: str
    #: `other`: a link that leads out, a device, or a name that is no text.
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
    #: What it may hold; 0 for a bucket, which has no limit here.
    size_bytes: int
    #: Null until it was measured.
    used_bytes: int | None
    measured_at: str | None
    #: Jobs that would write to it do not start.
    full: bool
    state: VolumeState
    message: str
    read_only: bool
    object_store: str | None
    prefix: str
    #: Shown to its owner and to operators only.
    shares: list[VolumeShareView]
    #: Whether the caller may.
    may_write: bool
    mine: bool
    created_at: str
    #: Live jobs that mount it, as far as the caller may see them.
    jobs: list[VolumeJobView]


class ObjectStoreCreate(TypedDict):
    name: str
    #: s3: S3 and what speaks like it, such as MinIO.
    kind: Literal["s3", "gcs"]
    bucket: str
    #: Of S3.
    access_key: NotRequired[str]
    #: Whether jobs may write to it.
    allow_write: NotRequired[bool]
    #: Null: the provider's own.
    endpoint: NotRequired[str | None]
    #: The part of the bucket that is opened.
    prefix: NotRequired[str]
    region: NotRequired[str]
    #: Of S3 the secret key, of GCS the account's key as JSON. Kept encrypted, never shown.
    secret: NotRequired[str]


class ObjectStoreEdit(TypedDict):
    """What may be changed about how a bucket is reached; what is left out stays as it is."""

    access_key: NotRequired[str]
    allow_write: NotRequired[bool]
    endpoint: NotRequired[str | None]
    region: NotRequired[str]
    secret: NotRequired[str]


class ObjectStoreTestView(TypedDict):
    ok: bool
    detail: str
    #: Right below the prefix.
    objects_seen: int


class UploadComplete(TypedDict):
    #: blake2b-256, in hexadecimal digits.
    checksum: str


class UploadCreate(TypedDict):
    #: From the volume's root on.
    path: str
    size: int
    #: Of the whole, if it is known already.
    checksum: NotRequired[str | None]
    #: The file's own time; null: when it is complete.
    modified_at: NotRequired[str | None]
    #: Of every part but the last. There may be 100000 parts.
    part_bytes: NotRequired[int]


class UploadView(TypedDict):
    id: str
    path: str
    size: int
    part_bytes: int
    #: Their numbers begin with 0.
    parts: int
    #: The parts that are there already.
    have: list[int]


class VolumeCreate(TypedDict):
    name: str
    #: block: one writer or many readers. filesystem: many of both. object: a part of a bucket.
    type: Literal["block", "filesystem", "object"]
    #: Null: the only one there is.
    cluster: NotRequired[str | None]
    #: Of an object volume: the bucket that it is a part of.
    object_store: NotRequired[str | None]
    #: Of an object volume: the part of the bucket that it shows.
    prefix: NotRequired[str]
    #: What it may hold; needed for block and filesystem.
    size: NotRequired[float | str]


class VolumeEdit(TypedDict):
    """What may be changed about a volume; what is left out stays as it is."""

    #: A volume only grows.
    size: NotRequired[float | str | None]


class VolumeShareBody(TypedDict):
    kind: Literal["user", "group"]
    name: str
    mode: NotRequired[Literal["ro", "rw"]]


class VolumeSharesPut(TypedDict):
    #: With whom it is shared from now on, all of them.
    shares: list[VolumeShareBody]
