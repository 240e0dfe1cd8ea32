"""The effects on engines that a unit of work decided. The controller sends them after the commit."""

from __future__ import annotations

from corral.control.fleet.node_effects import NodeEffect
from corral.core.jobs.lifecycle import Instruction
from corral.core.model import Job


class PendingEffects:
    """Entries are only appended."""

    def __init__(self) -> None:
        #: launches and stops of attempts
        self.instructions: list[Instruction] = []
        #: attempts whose end is recorded by this transaction; after the commit the engine may forget them
        self.recorded_ends: list[str] = []
        #: effects on nodes, each with the node's cluster
        self.nodes: list[tuple[str, NodeEffect]] = []
        #: deleted jobs, whose logs and directories are removed after the commit
        self.deleted_jobs: list[Job] = []

    @property
    def changes(self) -> int:
        return len(self.instructions) + len(self.recorded_ends) + len(self.nodes) + len(self.deleted_jobs)
