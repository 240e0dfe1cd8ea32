"""What a provider of storage is: something that makes a directory out of an order, where that takes long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from corral.engines.attempts.instance_messages import StorageSpec


class CannotProvide(Exception):
    """This storage cannot be had; the message says why, in words for the job's owner."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a provider may use."""

    attempt_id: str
    #: of the instance; its claim is locked as long as the attempt runs. Of engines without claims: a file that is there
    #: as long as the attempt is known
    rank_dir: str
    #: goes with the attempt
    scratch: str
    #: of the node, see StoragePlaces
    places: Mapping[str, Any]
    #: a line in the job's log
    say: Callable[[str], None]
    #: how far it is, in a few words; may be called as often as it likes
    progress: Callable[[str], None]


class StorageProvider(Protocol):
    """Makes one mount's directory ready and gives its path. Raises CannotProvide, or anything else for a bug. May take
    long; must be idempotent, and must survive being killed at any moment."""

    def provide(self, spec: StorageSpec, around: Surroundings) -> str: ...
