"""API schemas: volumes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.live.unit_of_work import Caller
from corral.control.records import JobRecord, Share, ShareKind, ShareMode, VolumeRecord, VolumeState
from corral.control.storage.volumes import VolumeDraft
from corral.core.model import JobState
from corral.core.storage.volumes import VolumeType
from corral.server.schemas.base import Body, Label, Note, Size, Text, View, rfc3339, rfc3339_or_none

Prefix = Annotated[Text, Field(max_length=512)]


class VolumeCreate(Body):
    name: Label
    type: Literal["block", "filesystem", "object"] = Field(
        description="block: one writer or many readers. filesystem: many of both. object: a part of a bucket."
    )
    size: Size = Field(default=0, description="Capacity; required for block and filesystem.")
    cluster: Label | None = Field(default=None, description="Null: the only cluster.")
    object_store: Label | None = Field(default=None, description="For an object volume: the object store.")
    prefix: Prefix = Field(default="", description="For an object volume: the prefix in the bucket.")
    description: Note = Field(default="", description="Purpose of the volume.")


class VolumeEdit(Body):
    """Changes to a volume. Fields that are left out keep their values."""

    size: Size | None = Field(default=None, description="A volume can only grow.")
    description: Note | None = Field(default=None, description="Purpose of the volume.")


class VolumeShareBody(Body):
    kind: Literal["user", "group"]
    name: Label
    mode: Literal["ro", "rw"] = "ro"


class VolumeSharesPut(Body):
    shares: Annotated[list[VolumeShareBody], Field(max_length=200)] = Field(
        description="The complete list of users and groups that the volume is shared with."
    )


class VolumeShareView(View):
    kind: ShareKind
    name: str
    mode: ShareMode


class VolumeJobView(View):
    """A live job that mounts a volume."""

    id: str
    name: str
    user: str
    state: JobState
    mode: str
    path: str = Field(description="Shown to the job's owner and to operators only.")


class VolumeView(View):
    id: str
    name: str
    owner: str
    type: VolumeType
    cluster: str
    size_bytes: int = Field(description="Capacity; 0 for a bucket, which has no limit here.")
    used_bytes: int | None = Field(description="Null until the use was measured.")
    measured_at: str | None
    full: bool = Field(description="Jobs that would write to the volume do not start.")
    state: VolumeState
    message: str
    read_only: bool
    object_store: str | None
    prefix: str
    description: str
    shares: list[VolumeShareView] = Field(description="Shown to its owner and to operators only.")
    may_write: bool = Field(description="Whether the caller may write.")
    mine: bool
    created_at: str
    jobs: list[VolumeJobView] = Field(description="Live jobs that mount the volume and that the caller may see.")


def draft_of(body: VolumeCreate) -> VolumeDraft:
    return VolumeDraft(
        name=body.name,
        type=VolumeType(body.type),
        size_bytes=body.size,
        cluster=body.cluster,
        object_store=body.object_store,
        prefix=body.prefix,
        description=body.description,
    )


def share_of(body: VolumeShareBody) -> Share:
    return Share(kind=ShareKind(body.kind), name=body.name, mode=ShareMode(body.mode))


def volume_view(volume: VolumeRecord, caller: Caller, *, may_write: bool, jobs: list[JobRecord]) -> VolumeView:
    sees_all_shares = caller.is_operator or caller.name == volume.owner
    shares = [VolumeShareView(kind=share.kind, name=share.name, mode=share.mode) for share in volume.shared]
    return VolumeView(
        id=volume.id,
        name=volume.name,
        owner=volume.owner,
        type=volume.type,
        cluster=volume.cluster,
        size_bytes=volume.size_bytes,
        used_bytes=volume.used_bytes,
        measured_at=rfc3339_or_none(volume.measured_at),
        full=volume.is_full,
        state=volume.state,
        message=volume.message,
        read_only=volume.read_only,
        object_store=volume.object_store,
        prefix=volume.prefix,
        description=volume.description,
        shares=shares if sees_all_shares else [],
        may_write=may_write,
        mine=volume.owner == caller.name,
        created_at=rfc3339(volume.created_at),
        jobs=[view for record in jobs for view in _job_views(record, caller, volume.id)],
    )


def _job_views(record: JobRecord, caller: Caller, volume_id: str) -> list[VolumeJobView]:
    job, may_see_all = record.job, caller.is_operator or caller.name == record.job.user
    return [
        VolumeJobView(
            id=job.id,
            name=job.name,
            user=job.user,
            state=job.state,
            mode="ro" if mount.read_only else "rw",
            path=mount.path if may_see_all else "",
        )
        for mount in record.spec.mounts
        if mount.volume_id == volume_id
    ]
