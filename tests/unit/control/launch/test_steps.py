"""The launch steps run in the order of their stages, each with the order that the one before it returned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from corral.control.launch.steps import LaunchStage, LaunchSteps
from corral.control.ports import Instance, LaunchOrder, LaunchRefused

ORDER = LaunchOrder(
    attempt_id="j-1.1", job_id="j-1", user="ann", command=("run",), instances=(Instance(rank=0, node="n1"),)
)


@dataclass
class Step:
    name: str
    refusal: str = ""

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        if self.refusal:
            raise LaunchRefused(self.refusal)
        return replace(order, command=(*order.command, f"{cluster}:{self.name}"))


def test_steps_run_in_the_order_of_their_stages() -> None:
    steps = LaunchSteps({LaunchStage.DATASETS: Step("datasets"), LaunchStage.IMAGE: Step("image")})
    assert steps.prepare("hpc", ORDER).command == ("run", "hpc:image", "hpc:datasets")
    assert LaunchSteps({}).prepare("hpc", ORDER) is ORDER


def test_a_refusal_ends_the_preparation() -> None:
    steps = LaunchSteps({LaunchStage.IMAGE: Step("image", refusal="no login"), LaunchStage.VOLUMES: Step("volumes")})
    with pytest.raises(LaunchRefused, match="no login"):
        steps.prepare("hpc", ORDER)
