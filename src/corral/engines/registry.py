"""The engines that a cluster can have.

A key of `ENGINES` is the value of `cluster.engine` in the configuration. The value is the engine's factory: a module
with the functions `open_engine(setup: EngineSetup) -> Engine` and, for servers that stand by,
`open_logs(root: Path, is_over: Callable[[str], bool]) -> AttemptLogs`. Factories are imported when a cluster
is opened, so that a command which only reads the configuration does not load the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corral.control.ports import AttemptLogs, Engine
    from corral.engines.engine_setup import EngineSetup

ENGINES: Mapping[str, str] = {
    "local": "corral.engines.local.factory",
    "slurm": "corral.engines.slurm.factory",
    "kubernetes": "corral.engines.kubernetes.factory",
}


def open_engine(name: str, setup: EngineSetup) -> Engine:
    """Start the engine of a cluster. The caller closes it."""
    engine: Engine = import_module(ENGINES[name]).open_engine(setup)
    return engine


def open_logs(name: str, root: Path, is_over: Callable[[str], bool]) -> AttemptLogs:
    """The output of a cluster's attempts, without its engine. `is_over` says whether the store knows an attempt's
    end."""
    logs: AttemptLogs = import_module(ENGINES[name]).open_logs(root, is_over)
    return logs
