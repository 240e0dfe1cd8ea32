"""API schemas: files of volumes and uploads to them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.control.ports.volume_files import FileKind, OpenedFile, StoredFile
from corral.core.storage.checksums import ALGORITHM
from corral.server.schemas.base import Body, Text, View, parse_time, rfc3339
from corral.stores.storage.uploads import MAX_PART_BYTES, MAX_PARTS, MIN_PART_BYTES, Upload

Checksum = Annotated[Text, Field(pattern=r"^[0-9a-f]{64}$", description=f"{ALGORITHM}, in hexadecimal digits.")]
FilePath = Annotated[Text, Field(min_length=1, max_length=4096, description="Path relative to the volume's root.")]
#: More than any disk has.
MAX_FILE_BYTES = 1 << 50


class VolumeFileView(View):
    path: str = Field(description="Path relative to the volume's root.")
    kind: FileKind = Field(
        description="`other`: a link to a place outside of the volume, a device, or a name that is not valid text."
    )
    size: int
    modified_at: str


class ChecksumView(View):
    path: str
    algorithm: str
    checksum: str
    size: int
    etag: str = Field(description="Size of the content that the checksum was computed of.")


class UploadCreate(Body):
    path: FilePath
    size: int = Field(ge=0, le=MAX_FILE_BYTES)
    part_bytes: int = Field(
        default=8 * 1024 * 1024,
        ge=MIN_PART_BYTES,
        le=MAX_PART_BYTES,
        description=f"Size of every part except the last. There may be {MAX_PARTS} parts.",
    )
    checksum: Checksum | None = Field(default=None, description="Checksum of the whole file, if it is known already.")
    modified_at: Text | None = Field(
        default=None, description="The file's modification time; null: the time at which the upload is completed."
    )


class UploadComplete(Body):
    checksum: Checksum


class UploadView(View):
    id: str
    path: str
    size: int
    part_bytes: int
    parts: int = Field(description="Numbers of the parts, beginning with 0.")
    have: list[int] = Field(description="Parts that were received already.")


def file_view(found: StoredFile) -> VolumeFileView:
    return VolumeFileView(
        path=found.path, kind=found.kind, size=found.size_bytes, modified_at=time_text(found.modified_ms)
    )


def checksum_view(path: str, opened: OpenedFile, checksum: str) -> ChecksumView:
    return ChecksumView(path=path, algorithm=ALGORITHM, checksum=checksum, size=opened.size_bytes, etag=opened.tag)


def upload_view(upload: Upload) -> UploadView:
    order = upload.order
    return UploadView(
        id=upload.id,
        path=order.path,
        size=order.size_bytes,
        part_bytes=order.part_bytes,
        parts=order.parts,
        have=sorted(upload.have),
    )


def time_text(modified_ms: int) -> str:
    return rfc3339(modified_ms / 1000)


def time_ms(text: str) -> int:
    """Raises ValueError."""
    return round(parse_time(text) * 1000)
