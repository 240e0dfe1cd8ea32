"""Port: the storage of volumes; each engine has its own kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class VolumeUnavailable(Exception):
    """The volume's state is unknown at this moment, or it could not be changed: try again later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeUse:
    used_bytes: int
    #: whether the file system itself refuses more than the volume's size
    is_enforced: bool = False


class VolumeDriver(Protocol):
    """Block and filesystem volumes of one cluster. Every method is idempotent by the volume's id; what fails raises
    VolumeUnavailable with the reason."""

    def create(self, volume_id: str, size_bytes: int, owner: str) -> None:
        """Creates an empty volume. An existing one keeps its contents."""

    def resize(self, volume_id: str, size_bytes: int) -> None: ...

    def delete(self, volume_id: str) -> None:
        """Removes a volume with its contents. A missing one is ignored."""

    def usage(self, volume_id: str) -> VolumeUse:
        """The used space. May take long for many files: never called where others wait."""

    def is_open_to_jobs(self, volume_id: str) -> bool:
        """Whether accounts of jobs can reach the volume. May wait for the disk: not for the controller's thread."""

    def close_to_jobs(self, volume_id: str) -> None:
        """Closes a volume that no job mounts any more to the accounts of jobs. Quick."""

    def path_of(self, volume_id: str) -> str | None:
        """The path of the volume on this machine; None if only the nodes have it."""

    def volumes(self) -> set[str]:
        """The ids of all that are there, also of those whose creation or deletion was cut short."""
