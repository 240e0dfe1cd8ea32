"""The steps that prepare a launch: one ordered list.

Before an engine gets an order, the outbox runs these steps on the engine's own thread. Each step checks something,
prepares files, or completes the order with values that are secret or only known now. A step may wait for a disk or a
database; it must be idempotent, because a launch that the engine cannot take now is prepared again later.

To add a step: add a stage here, at its place in the order, and give the step that implements it to the controller
(`corral.server.wiring.foundation`). Two things happen before these steps: `launch_order` makes the order when the plan
is committed, and `ResumePoints` finds the checkpoint that the attempt resumes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Protocol

from corral.control.ports import LaunchOrder


class LaunchStage(Enum):
    """The stages of a launch, in the order in which their steps run."""

    #: make the job's directories
    DIRECTORIES = auto()
    #: check that the server's disk has room
    DISK_ROOM = auto()
    #: write the settings and keys that a workbench reads at its start
    WORKBENCH = auto()
    #: decrypt the job's secrets, and write those that are files
    SECRETS = auto()
    #: decrypt the key of the job's Git repository, and let the command begin in its commit
    GIT = auto()
    #: look up the image's address, and decrypt the login to pull it
    IMAGE = auto()
    #: check the user's access to volumes, and decrypt the secrets of buckets
    VOLUMES = auto()
    #: check the user's access to dataset versions, and look up where their bytes are
    DATASETS = auto()
    #: note which volumes the job can write, so that their sizes are measured soon
    VOLUME_USE = auto()
    #: check that this server still leads, if it is one of several
    LEASE = auto()


class LaunchStep(Protocol):
    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """The order after this step.

        Raises LaunchRefused if the attempt can never be launched, and EngineUnavailable or StoreUnavailable if the
        launch is to be tried again later.
        """


class LaunchSteps:
    """The steps of one server. A stage without a step is skipped."""

    def __init__(self, steps: Mapping[LaunchStage, LaunchStep]) -> None:
        self._steps = [steps[stage] for stage in LaunchStage if stage in steps]

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        for step in self._steps:
            order = step.prepare(cluster, order)
        return order
