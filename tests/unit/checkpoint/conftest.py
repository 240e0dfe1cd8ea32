"""A keeper on a directory of its own, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.checkpoint.environment import Surroundings
from corral.checkpoint.keeper import Keeper
from corral.checkpoint.warning import WARNING


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Callable[..., Keeper]:
    """A keeper as a new process would have it."""

    def build(**changes: Any) -> Keeper:
        return Keeper(Surroundings(**{"directory": tmp_path / "checkpoints", **changes}), monotonic=clock)

    return build


@pytest.fixture(autouse=True)
def signal_as_before() -> Iterator[None]:
    yield
    WARNING.forget()
