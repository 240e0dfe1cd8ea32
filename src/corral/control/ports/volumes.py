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
        """Make it, empty. One that is there already keeps what it holds."""

    def resize(self, volume_id: str, size_bytes: int) -> None: ...

    def delete(self, volume_id: str) -> None:
        """Remove it with all it holds. One that is not there is gone already."""

    def usage(self, volume_id: str) -> VolumeUse:
        """How much is in it. May take long for many files: never called where others wait."""

    def is_let_in(self, volume_id: str) -> bool:
        """Whether accounts of jobs were let through to it, so that `let_go` has something to do. May wait for the disk:
        never called in the controller's thread."""

    def let_go(self, volume_id: str) -> None:
        """No job has it any more: what was opened for their accounts is closed again. Quick."""

    def path_of(self, volume_id: str) -> str | None:
        """The path of the volume on this machine; None if only the nodes have it."""

    def volumes(self) -> set[str]:
        """The ids of all that are there, also of those whose creation or deletion was cut short."""
