"""Refusals by Slurm: permanent ones, temporary ones, and those of an account."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.ports import Withholding
from corral.engines.slurm.cluster import drains
from corral.engines.slurm.cluster.drains import NodeDrains
from corral.engines.slurm.slurm_api.commands import SlurmRefused, is_passing
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode
from tests.unit.engines.slurm.unused_slurm import UnusedSlurm


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("Batch job submission failed: Unable to contact slurm controller (connect failure)", True),
        ("Batch job submission failed: Socket timed out on send/recv operation", True),
        ("Slurm temporarily unable to accept job, sleeping and retrying", True),
        # One text for every limit of accounting, those that last among them.
        (
            "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or "
            "time limits)",
            False,
        ),
        ("Batch job submission failed: Invalid account or account/partition combination specified", False),
        ("Batch job submission failed: Requested node configuration is not available", False),
    ],
)
def test_only_what_can_be_over_soon_is_tried_again(said: str, passes: bool) -> None:
    assert is_passing(said) is passes


class OneNode(UnusedSlurm):
    """A Slurm with one node, that refuses a configured list of requests."""

    def __init__(self) -> None:
        self.node = SlurmNode(name="n1", state="IDLE")
        self.refusal = ""
        self.asked = 0

    def nodes(self) -> list[SlurmNode]:
        return [self.node]

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None:
        self.asked += 1
        if self.refusal:
            raise SlurmRefused(self.refusal)
        flags = frozenset({"DRAIN"}) if is_withheld else frozenset[str]()
        self.node = SlurmNode(name=name, state="IDLE", flags=flags, reason=reason)


@pytest.fixture
def slurm() -> OneNode:
    return OneNode()


@pytest.fixture
def words(slurm: OneNode, tmp_path: Path) -> NodeDrains:
    return NodeDrains(tmp_path, slurm)


def test_a_drain_that_is_refused_once_is_said_again(slurm: OneNode, words: NodeDrains) -> None:
    slurm.refusal = "Invalid node state specified"
    words.withhold("n1", "repair")
    assert words.found(slurm.nodes()) == {}, "as if it was never said: then it is said again"
    slurm.refusal = ""
    words.withhold("n1", "repair")
    assert words.found(slurm.nodes()) == {"n1": Withholding.KEPT}
    assert slurm.node.reason == "corral: repair"


def test_a_resume_that_is_refused_once_is_said_again(slurm: OneNode, words: NodeDrains) -> None:
    words.withhold("n1", "repair")
    slurm.refusal = "Requested node configuration is not available"
    words.release("n1", force=False)
    assert words.found(slurm.nodes()) == {"n1": Withholding.KEPT}
    slurm.refusal = ""
    words.release("n1", force=False)
    assert words.found(slurm.nodes()) == {}
    assert slurm.node.flags == frozenset()


@pytest.mark.parametrize(
    "refusal",
    [
        "Access/permission denied",
        "Invalid user id",
        "slurmrestd cannot change nodes (v0.0.38), and scontrol is not here",
    ],
)
def test_an_account_that_may_change_no_node_asks_once(slurm: OneNode, words: NodeDrains, refusal: str) -> None:
    slurm.refusal = f"slurm_update error: {refusal}"
    words.withhold("n1", "repair")
    words.withhold("n1", "repair")
    words.release("n1", force=True)
    assert (slurm.asked, words.found(slurm.nodes())) == (1, None)
    assert "withheld in corral only" in words.note


def test_a_right_to_drain_that_is_given_later_is_found(
    slurm: OneNode, words: NodeDrains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drains, "ASK_AGAIN_SECONDS", 0.0)
    slurm.refusal = "slurm_update error: Access/permission denied"
    words.withhold("n1", "repair")
    slurm.refusal = ""
    words.withhold("n1", "repair")
    assert (words.found(slurm.nodes()), words.note) == ({"n1": Withholding.KEPT}, "")


def test_a_refusal_is_reported_once_until_it_changes(
    slurm: OneNode, words: NodeDrains, caplog: pytest.LogCaptureFixture
) -> None:
    for refusal in ("busy", "busy", "booting", "", "booting"):
        slurm.refusal = refusal
        words.withhold("n1", "repair")
        words.release("n1", force=True)
    reported = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert reported == ["busy", "booting", "booting"]
