"""The daemons of Slurm that corral depends on: the one that answers the engine, and a slurmd on each node.

What is known comes from the engine's own queries: nothing here asks Slurm.
"""

from __future__ import annotations

from collections.abc import Iterable

from corral.control.ports import EnginePart, EnginePartKind
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode

#: States and flags of a node whose slurmd does not answer slurmctld.
_SILENT = frozenset({"DOWN", "NOT_RESPONDING", "UNKNOWN"})
#: Flags of nodes that Slurm itself powers off and on.
_ASLEEP = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"})


class Daemons:
    """Not safe for several threads: the engine's lock guards it."""

    def __init__(self, controller: str) -> None:
        """`controller` is the daemon that answers the engine: slurmctld, or slurmrestd."""
        self._controller = controller
        self._trouble = "not asked yet"
        self._last_error = ""
        self._nodes: tuple[SlurmNode, ...] = ()
        #: start times of slurmd by node, and how often each was started again
        self._started: dict[str, float] = {}
        self._restarts: dict[str, int] = {}

    def answered(self, nodes: Iterable[SlurmNode]) -> None:
        self._trouble = ""
        self._nodes = tuple(nodes)
        for node in self._nodes:
            if node.daemon_started_at is None:
                continue
            if self._started.get(node.name, node.daemon_started_at) != node.daemon_started_at:
                self._restarts[node.name] = self._restarts.get(node.name, 0) + 1
            self._started[node.name] = node.daemon_started_at

    def failed(self, error: str) -> None:
        self._trouble = self._last_error = error

    def parts(self, note: str = "") -> list[EnginePart]:
        """`note` says what does not work although the controller does."""
        controller = EnginePart(
            name=self._controller,
            kind=EnginePartKind.DAEMON,
            healthy=not self._trouble,
            detail=self._trouble or note,
            last_error=self._last_error,
        )
        return [controller, *map(self._slurmd, sorted(self._nodes, key=lambda node: node.name))]

    def _slurmd(self, node: SlurmNode) -> EnginePart:
        states = {node.state, *node.flags}
        is_silent = bool(states & _SILENT) and not states & _ASLEEP
        shown = "+".join([node.state, *sorted(node.flags)]).lower()
        return EnginePart(
            name=f"slurmd {node.name}",
            kind=EnginePartKind.DAEMON,
            node=node.name,
            healthy=not is_silent,
            detail=f"{shown}: {node.reason}" if node.reason else shown,
            started_at=None if is_silent else node.daemon_started_at,
            restarts=self._restarts.get(node.name, 0),
        )
