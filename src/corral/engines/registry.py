"""The engines that a cluster can have.

A key of `ENGINES` is the value of `cluster.engine` in the configuration. The value is the engine's factory: a module
with a function `open_engine(setup: EngineSetup) -> Engine`. Factories are imported when a cluster
is opened, so that a command which only reads the configuration does not load the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.control.ports import Engine
    from corral.engines.engine_setup import EngineSetup

ENGINES: Mapping[str, str] = {
    "local": "corral.engines.local.factory",
    "slurm": "corral.engines.slurm.factory",
}


def open_engine(name: str, setup: EngineSetup) -> Engine:
    """Start the engine of a cluster. The caller closes it."""
    engine: Engine = import_module(ENGINES[name]).open_engine(setup)
    return engine
