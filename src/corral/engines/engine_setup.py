"""The parameters that the server passes to every engine, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.engines.attempts.fold_worker import FoldHomes
from corral.engines.attempts.isolation import Isolation
from corral.engines.storage.storage_specs import StoragePlaces


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSetup:
    """The surroundings of one cluster's engine."""

    #: the cluster's name, for messages
    cluster: str
    #: where the engine keeps the files of its attempts
    root: Path
    #: the server's home
    home: Path
    isolation: Isolation
    storage: StoragePlaces
    #: the most that is kept of the log of one instance
    log_limit_bytes: int
    #: files of ended attempts are folded when no attempt was launched for this long
    fold_after_seconds: float
    #: removes the directories of jobs whose attempts were folded, if they are empty
    fold_homes: FoldHomes
    #: the engine's own section of the configuration; the engine's factory declares the fields that it reads
    section: Any
