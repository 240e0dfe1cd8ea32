"""A server at rest: observations without news are no change, and lists that every look asks for are made once."""

from __future__ import annotations

from corral.control.fleet.gpu_holders import holders
from corral.control.jobs.disk_quota import Writers
from corral.control.ports import AttemptPhase
from corral.core.model import EndReason, NodeState
from tests.unit.control.world import TWO_NODES, Desk, draft, status


def test_an_observation_without_news_changes_nothing(desk: Desk) -> None:
    (job,) = desk.started(draft(gpus=2))
    seen = [status(job.attempt_id, AttemptPhase.RUNNING, desk.now)]
    desk.observe(*TWO_NODES, attempts=seen)
    state, before = desk.state, desk.state.changes
    held = holders(state)
    desk.now += 5.0
    desk.observe(*TWO_NODES, attempts=seen)
    assert desk.state is state
    assert state.changes == before
    assert holders(state) is held
    desk.observe(TWO_NODES[0], attempts=seen)
    assert state.changes > before, "a node is gone"
    assert state.snapshot.nodes[TWO_NODES[1].id].state is NodeState.DOWN


def test_writers_are_found_again_only_after_a_change_and_kept_while_they_write(desk: Desk) -> None:
    first, second = desk.started(draft(), draft())
    writers = Writers()
    found = writers.now(desk.state)
    assert sorted(found) == [first.attempt_id, second.attempt_id]
    assert writers.now(desk.state) is found
    desk.hear(first, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.submit(draft())
    assert dict(writers.now(desk.state)) == {second.attempt_id: found[second.attempt_id]}
    assert writers.now(desk.state)[second.attempt_id] is found[second.attempt_id]


def test_the_gpus_of_a_job_share_one_holder(desk: Desk) -> None:
    (job,) = desk.started(draft(gpus=2))
    found = holders(desk.state)
    assert job.allocation is not None
    assert len({id(found[gpu][0]) for grant in job.allocation.grants for gpu in grant.gpus}) == 1
