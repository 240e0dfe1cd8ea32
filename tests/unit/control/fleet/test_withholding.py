"""A node that takes no new jobs: by an operator here, or by an administrator of the engine; the last decision holds."""

from __future__ import annotations

from dataclasses import replace

from corral.control.fleet import node_actions
from corral.control.fleet.node_effects import ReleaseEffect, WithholdEffect
from corral.control.ports import Store, Withholding
from corral.core.model import NodeState
from tests.unit.control.world import ROOT, TWO_NODES, Desk

DRAINED = (replace(TWO_NODES[0], state=NodeState.CORDONED, reason="corral: cordoned by root"), TWO_NODES[1])


def state_of(desk: Desk, node: str = "n1") -> tuple[NodeState, NodeState]:
    found = desk.state.snapshot.nodes[node]
    return found.state, found.withheld


def test_an_operators_word_reaches_the_engine(desk: Desk) -> None:
    desk.do(node_actions.cordon, ROOT, "n1")
    assert desk.node_effects == [WithholdEffect(node="n1", reason=f"cordoned by {ROOT.name}")]
    desk.do(node_actions.cordon, ROOT, "n1")
    assert desk.node_effects == []
    desk.do(node_actions.uncordon, ROOT, "n1")
    assert desk.node_effects == [ReleaseEffect(node="n1", force=True)]


def test_calls_that_the_engine_never_got_are_repeated_after_a_crash(desk: Desk, store: Store) -> None:
    desk.do(node_actions.drain, ROOT, "n1")
    desk.state = desk.loaded()  # another server, after the first died with its outbox
    desk.now += 10.0
    desk.observe(*TWO_NODES, withheld={})
    assert desk.node_effects == [WithholdEffect(node="n1", reason="draining")]
    desk.observe(*DRAINED, withheld={"n1": Withholding.KEPT})
    assert desk.node_effects == []
    assert state_of(desk) == (NodeState.DRAINING, NodeState.DRAINING)
    desk.do(node_actions.uncordon, ROOT, "n1")
    desk.state = desk.loaded()
    desk.now += 10.0
    desk.observe(*DRAINED, withheld={"n1": Withholding.KEPT})
    assert desk.node_effects == [ReleaseEffect(node="n1", force=False)]


def test_a_node_that_is_resumed_at_the_engine_stays_resumed(desk: Desk) -> None:
    desk.do(node_actions.cordon, ROOT, "n1")
    desk.now += 10.0
    desk.observe(*TWO_NODES, withheld={"n1": Withholding.OVERRULED})
    assert state_of(desk) == (NodeState.READY, NodeState.READY)
    assert desk.actions("n1")[-1] == "node.uncordoned"
    assert desk.node_effects == [ReleaseEffect(node="n1", force=False)]


def test_observations_from_before_an_operators_action_are_ignored(desk: Desk) -> None:
    desk.now += 10.0
    desk.do(node_actions.cordon, ROOT, "n1")
    desk.observe(*TWO_NODES, withheld={"n1": Withholding.OVERRULED}, at=desk.now - 1.0)
    assert state_of(desk) == (NodeState.CORDONED, NodeState.CORDONED)
    assert desk.node_effects == []


def test_a_node_that_others_have_drained_is_cordoned_with_their_reason_until_an_operator_resumes_it(
    desk: Desk,
) -> None:
    desk.observe(replace(TWO_NODES[0], state=NodeState.CORDONED, reason="disk"), TWO_NODES[1], withheld={})
    assert state_of(desk) == (NodeState.CORDONED, NodeState.READY)
    assert desk.state.snapshot.nodes["n1"].reason == "disk"
    assert desk.node_effects == []
    desk.do(node_actions.uncordon, ROOT, "n1")
    assert desk.node_effects == [ReleaseEffect(node="n1", force=True)]


def test_an_engine_that_stores_no_reasons_is_not_called_again(desk: Desk) -> None:
    desk.do(node_actions.cordon, ROOT, "n1")
    desk.now += 10.0
    desk.observe(*TWO_NODES)
    assert desk.node_effects == []
    assert state_of(desk) == (NodeState.CORDONED, NodeState.CORDONED)
