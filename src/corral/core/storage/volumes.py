"""Volumes as far as they can change a scheduling decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Uploads in progress are in this directory at the volume's root: they are not part of the volume's content.
UPLOADS_DIRECTORY = ".corral-uploads"


class VolumeType(StrEnum):
    BLOCK = "block"
    FILESYSTEM = "filesystem"
    LOCAL = "local"
    OBJECT = "object"

    @property
    def has_one_writer(self) -> bool:
        """Whether a volume of this type takes one writer or any number of readers, never both."""
        return self is VolumeType.BLOCK


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeMount:
    """A volume that a job mounts. The mount point changes no decision."""

    volume: str
    writes: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Volume:
    id: str
    name: str
    owner: str
    type: VolumeType
    cluster: str = "local"
    #: the volume exceeds its size: jobs that write to it do not start
    is_full: bool = False
    #: why the volume cannot be mounted yet, as text; "" if it can
    not_ready: str = ""
