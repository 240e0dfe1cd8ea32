"""Storage that jobs mount, as far as it can change a decision: who writes, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: What is on its way into a volume waits here, at the volume's root: it is no part of what the volume holds.
UPLOADS_DIRECTORY = ".corral-uploads"


class VolumeType(StrEnum):
    BLOCK = "block"
    FILESYSTEM = "filesystem"
    LOCAL = "local"
    OBJECT = "object"

    @property
    def has_one_writer(self) -> bool:
        """Whether it takes one writer or any number of readers, and never both."""
        return self is VolumeType.BLOCK


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeMount:
    """One volume that a job mounts. Where the job sees it changes no decision."""

    volume: str
    writes: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Volume:
    id: str
    name: str
    owner: str
    type: VolumeType
    cluster: str = "local"
    #: more is in it than it may hold: nobody who writes to it starts
    is_full: bool = False
    #: why nobody can mount it yet, in words; "" when everybody who may can
    not_ready: str = ""
