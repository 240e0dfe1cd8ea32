"""The interface of a storage provider: prepares the directory of a mount, where that takes long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from corral.engines.attempts.instance_messages import StorageSpec


class CannotProvide(Exception):
    """This storage cannot be provided; the message explains it to the job's owner."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """The parameters of a provider."""

    attempt_id: str
    #: the instance's directory, whose claim is locked while the attempt runs. For engines without claims: a file that
    #: exists while the attempt is known
    rank_dir: str
    #: removed with the attempt
    scratch: str
    #: directories and limits of the node, see StoragePlaces
    places: Mapping[str, Any]
    #: writes a line into the job's log
    say: Callable[[str], None]
    #: reports the progress as a short text; may be called at any rate
    progress: Callable[[str], None]


class StorageProvider(Protocol):
    """Prepares the directory of one mount and returns its path. Raises CannotProvide; any other error is a bug. May
    take long; must be idempotent, and must survive being killed at any moment."""

    def provide(self, spec: StorageSpec, around: Surroundings) -> str: ...
