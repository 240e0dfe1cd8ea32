"""Opens the local engine from the section `local` of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from corral.engines.engine_setup import EngineSetup
from corral.engines.local.attempts import LocalLogs
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import HostFleet, VirtualFleet, fleet_for
from corral.engines.local.rundir import Layout

#: The fleet of a machine without GPUs.
DEFAULT_VIRTUAL_GPUS = "8xA100-80G"


class LocalSection(Protocol):
    @property
    def virtual_gpus(self) -> str | None: ...
    @property
    def virtual_nodes(self) -> str | None: ...


def open_engine(setup: EngineSetup) -> LocalEngine:
    return LocalEngine(
        root=setup.root,
        fleet=configured_fleet(setup.section, setup.home / "local"),
        log_limit_bytes=setup.log_limit_bytes,
        isolation=setup.isolation,
        storage=setup.storage,
        fold_after_seconds=setup.fold_after_seconds,
        fold_homes=setup.fold_homes,
    )


def open_logs(root: Path, is_over: Callable[[str], bool]) -> LocalLogs:
    # The files say themselves whether an attempt is over.
    return LocalLogs(Layout(str(root)))


def configured_fleet(section: LocalSection, drill_directory: Path) -> HostFleet | VirtualFleet:
    """The configured virtual GPUs; without them the GPUs of this machine; on a machine without GPUs eight virtual
    ones."""
    fleet = fleet_for(
        virtual_gpus=section.virtual_gpus,
        virtual_nodes_text=section.virtual_nodes,
        drill_directory=drill_directory,
    )
    if isinstance(fleet, HostFleet) and not any(node.gpus for node in fleet.nodes()):
        return fleet_for(virtual_gpus=DEFAULT_VIRTUAL_GPUS, drill_directory=drill_directory)
    return fleet
