"""A drain with a time: jobs that are left then save and continue elsewhere, and the emptied node is recorded."""

from __future__ import annotations

from corral.control.fleet import node_actions
from corral.control.fleet.draining import drains
from corral.control.live.state import State
from corral.control.ports import AttemptPhase
from corral.core.model import EndReason, JobState, NodeState
from tests.unit.control.world import ROOT, Desk, draft


def shown(state: State, now: float, node: str) -> NodeState:
    view = state.fleet(now).view(node)
    assert view is not None
    return view.state


def node_of(desk: Desk, job_id: str) -> str:
    allocation = desk.job(job_id).allocation
    assert allocation is not None
    return allocation.grants[0].node


def test_without_a_time_jobs_run_to_their_end_and_the_node_is_drained_then(desk: Desk) -> None:
    job = desk.started(draft(gpus=2))[0]
    node = node_of(desk, job.id)
    desk.do(drains.drain, ROOT, node)
    desk.now += 86400.0
    assert not drains.is_due(desk.state, desk.now)
    assert desk.job(job.id).state is JobState.RUNNING
    assert shown(desk.state, desk.now, node) is NodeState.DRAINING
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert shown(desk.state, desk.now, node) is NodeState.DRAINED
    assert drains.is_due(desk.state, desk.now)
    desk.do(drains.go_on)
    assert desk.actions(node)[-1] == "node.drained"
    assert desk.state.drains[node].drained_at == desk.now
    assert not drains.is_due(desk.state, desk.now)


def test_at_the_time_a_job_is_asked_to_save_and_moves_to_a_free_place(desk: Desk) -> None:
    job = desk.started(draft(gpus=2))[0]
    node = node_of(desk, job.id)
    other = {"n1": "n2", "n2": "n1"}[node]
    desk.do(drains.drain, ROOT, node, desk.now + 600.0)
    desk.now += 599.0
    assert not drains.is_due(desk.state, desk.now)
    # Another server goes on with it.
    desk.state = desk.loaded()
    desk.now += 1.0
    assert drains.is_due(desk.state, desk.now)
    desk.do(drains.go_on)
    asked = desk.job(job.id)
    assert (asked.state, asked.stopping_for) == (JobState.STOPPING, EndReason.MOVED)
    assert desk.state.receipts[job.id].rule == "drain"
    assert f"continues on {other}" in desk.state.receipts[job.id].detail
    # Asked once: it may use its grace period.
    assert not drains.is_due(desk.state, desk.now)
    desk.hear(asked, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert node_of(desk, job.id) == other
    desk.do(drains.go_on)
    assert desk.actions(node)[-1] == "node.drained"


def test_a_job_without_another_place_is_queued_again(desk: Desk) -> None:
    first, second = desk.started(draft(gpus=4), draft(gpus=4))
    node = node_of(desk, first.id)
    desk.do(drains.drain, ROOT, node, desk.now - 5.0)
    asked = desk.job(first.id)
    assert (asked.state, asked.stopping_for) == (JobState.STOPPING, EndReason.PREEMPTED)
    assert "queued again" in asked.message
    assert desk.job(second.id).state is JobState.RUNNING
    desk.hear(asked, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.job(first.id).state is JobState.QUEUED
    assert desk.cycle() == []


def test_a_repeated_drain_changes_the_time_and_an_uncordon_ends_it(desk: Desk) -> None:
    job = desk.started(draft(gpus=1))[0]
    node = node_of(desk, job.id)
    desk.do(drains.drain, ROOT, node, desk.now + 60.0)
    desk.do(drains.drain, ROOT, node)
    desk.now += 120.0
    assert desk.state.drains[node].empty_by is None
    assert not drains.is_due(desk.state, desk.now)
    desk.do(node_actions.uncordon, ROOT, node)
    assert not desk.state.drains
    assert not drains.is_due(desk.state, desk.now)
    assert not desk.loaded().drains
    assert desk.job(job.id).state is JobState.RUNNING
