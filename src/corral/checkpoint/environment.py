"""The settings of checkpoints in a job's environment. The only module of this package that reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KEEP = 3


@dataclass(frozen=True)
class Surroundings:
    """The directory and interval of a program's checkpoints, and its rank among the processes."""

    #: None: nothing is saved, as in a run outside of the platform.
    directory: Path | None = None
    resume_from: Path | None = None
    #: None: reported values are dropped.
    output: Path | None = None
    #: None: only when the platform asks for it.
    interval_seconds: float | None = None
    keep: int = KEEP
    attempt: int = 0
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"keep must be at least 1, not {self.keep}: one checkpoint has to stay")
        if self.interval_seconds is not None and not self.interval_seconds > 0:
            raise ValueError(f"the interval must be over 0 seconds, not {self.interval_seconds}")
        if not 0 <= self.rank < self.world:
            raise ValueError(f"rank {self.rank} does not exist among {self.world}")


def read_environment(env: Mapping[str, str] = os.environ) -> Surroundings:
    rank, world = _place(env)
    return Surroundings(
        directory=_path(env, "CORRAL_CHECKPOINT_DIR"),
        resume_from=_path(env, "CORRAL_RESUME_FROM"),
        output=_path(env, "CORRAL_OUTPUT_DIR"),
        interval_seconds=_number(env, "CORRAL_CHECKPOINT_INTERVAL_SECONDS"),
        keep=_integer(env, "CORRAL_CHECKPOINT_KEEP", KEEP),
        attempt=_integer(env, "CORRAL_ATTEMPT", 0),
        rank=rank,
        world=world,
    )


def _place(env: Mapping[str, str]) -> tuple[int, int]:
    # A launcher like torchrun numbers the processes, the platform numbers the nodes. `WORLD_SIZE` counts processes, and
    # the platform sets it for such launchers: without their `RANK` there is one process on each node.
    if env.get("RANK"):
        rank = _integer(env, "RANK", 0)
        return rank, max(_integer(env, "WORLD_SIZE", 1), rank + 1)
    rank = _integer(env, "CORRAL_RANK", 0)
    return rank, max(_integer(env, "NNODES", 1), rank + 1)


def _path(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name)
    return Path(value) if value else None


def _number(env: Mapping[str, str], name: str) -> float | None:
    value = env.get(name)
    try:
        return float(value) if value else None
    except ValueError:
        raise ValueError(f"{name} must be a number, not {value!r}") from None


def _integer(env: Mapping[str, str], name: str, default: int) -> int:
    value = env.get(name)
    try:
        return int(value) if value else default
    except ValueError:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from None
