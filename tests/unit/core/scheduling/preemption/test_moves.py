"""Jobs that are moved to make room for another job: one cycle at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.core.jobs.lifecycle import Ended, MoveRequested, StopRequested, Up, advance
from corral.core.model import Elastic, EndReason, Job, JobState, Prediction, Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.plan.plan import Plan, PreemptionRule
from corral.core.snapshot.changes import PutJob, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from tests.unit.core.builders import node, running, snapshot_of, started, waiting

NOW = 10_000.0
SHORT = Queue(name="short", policy="shortest", preempts=True)


def rules(**values: Any) -> PutRules:
    preemption = PreemptionRules(**{"enabled": True, "min_run_seconds": 600.0, "moves": True, **values})
    return PutRules(limits=Limits(), score_time_constant=3600.0, preemption=preemption)


def runs_for(seconds: float) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=3)


def small(serial: int, on: dict[str, tuple[int, ...]], left: float = 100.0, **values: Any) -> Job:
    """A job that saves, and has so much left to run."""
    base = {"queue": "short", "predicted": runs_for(NOW + left), "checkpointed_at": NOW - 60.0}
    return running(serial, on, **{**base, **values})


def moved(plan: Plan) -> dict[str, str]:
    """The new nodes of moved jobs."""
    return {one.job_id: one.to.grants[0].node for one in plan.preemptions if one.to is not None}


def preempted_for(plan: Plan) -> dict[str, str]:
    return {one.job_id: one.for_job for one in plan.preemptions if one.to is None}


def halves(**values: Any) -> tuple[Any, ...]:
    """Two nodes, each with a small job: neither has room for a whole-node job, and together they have."""
    return (
        SHORT,
        node("n1", 4),
        node("n2", 4),
        small(1, {"n1": (0, 1)}, **values),
        small(2, {"n2": (0, 1)}, checkpointed_at=NOW - 10.0),
        waiting(3, queue="short", gpus=4, predicted=runs_for(5_000.0)),
    )


def happened(snapshot: ClusterSnapshot, job: Job) -> Job:
    snapshot.apply([PutJob(job=job)])
    return job


def test_a_small_job_goes_on_beside_another_one_so_that_a_whole_node_is_free() -> None:
    snapshot = snapshot_of(rules(), *halves(grace_seconds=30.0))
    plan = schedule(snapshot, NOW)
    assert moved(plan) == {"j-2": "n1"}, "it has saved last, and loses least"
    assert not preempted_for(plan), "no job goes back to the queue"
    (move,) = plan.preemptions
    assert (move.rule, move.for_job, move.lost_gpu_seconds) == (PreemptionRule.MOVE, "j-3", 20.0)
    assert "j-3 asks for 4 GPUs of one node" in move.detail
    assert "j-2 moves from n2 to n1" in move.detail


def test_no_job_is_moved_where_that_is_not_asked_for() -> None:
    assert not schedule(snapshot_of(rules(moves=False), *halves()), NOW).preemptions
    fcfs = replace(SHORT, policy="fcfs")
    assert not schedule(snapshot_of(rules(), *halves(), fcfs), NOW).preemptions, "its order does not preempt"


@pytest.mark.parametrize(
    "spared",
    [
        {"checkpointed_at": None},
        {"preemptible": False},
        {"allocated_at": NOW - 599.0},
        {"pinned_at": 1.0},
        {"state": JobState.STARTING, "started_at": None},
        {"elastic": Elastic(min_gpus=2, max_gpus=2)},
    ],
    ids=["never-saved", "not-preemptible", "too-young", "pinned", "starting", "elastic"],
)
def test_jobs_that_are_never_moved(spared: dict[str, Any]) -> None:
    snapshot = snapshot_of(
        rules(), SHORT, node("n1", 4), node("n2", 4),
        small(1, {"n1": (0, 1)}, **spared), small(2, {"n2": (0, 1)}, **spared),
        waiting(3, queue="short", gpus=4, predicted=runs_for(5_000.0)),
    )  # fmt: skip
    assert not schedule(snapshot, NOW).preemptions


def test_moved_job_goes_on_and_the_other_job_starts_in_its_place() -> None:
    snapshot = snapshot_of(rules(), *halves(), waiting(4, at=4.0, queue="short", gpus=2, predicted=runs_for(50_000.0)))
    plan = schedule(snapshot, NOW)
    (move,) = plan.preemptions
    assert move.to is not None
    event = MoveRequested(at=NOW, allocation=move.to, for_job="j-3", message="makes room")
    moving = happened(snapshot, advance(snapshot.jobs["j-2"], event).job)
    assert moving.is_moving
    assert moving.is_resizing
    assert {grant.node for grant in (moving.allocation.grants if moving.allocation else ())} == {"n1", "n2"}

    meanwhile = schedule(snapshot, NOW + 1)
    assert (meanwhile.starts, meanwhile.preemptions) == ((), ()), "what it leaves is for the one that it is moved for"
    why = explain(snapshot, meanwhile, snapshot.jobs["j-3"], NOW + 1)
    (reason,) = [one for one in why.reasons if one.rule == "giving-way"]
    assert reason.numbers["coming_gpus"] == 2.0

    after = advance(moving, Ended(at=NOW + 5, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (after.state, after.attempt, after.preempted_for, after.message) == (JobState.STARTING, 2, None, "")
    assert after.allocation == move.to
    assert after.next_allocation is None
    assert (after.saved_seconds, after.attained_seconds, after.ran_seconds) == (NOW - 10.0, NOW + 5, 0.0)
    happened(snapshot, advance(after, Up(at=NOW + 6)).job)
    assert started(schedule(snapshot, NOW + 6)) == {"j-3": ["n2"]}


def test_where_there_is_no_room_those_behind_both_make_it() -> None:
    """j-1 and j-3 are nearly done; j-2 and j-4 run for long. None of the nodes could be freed by preemption alone."""
    snapshot = snapshot_of(
        rules(), SHORT, node("n1", 4), node("n2", 4),
        small(1, {"n1": (0, 1)}), small(2, {"n1": (2, 3)}, left=90_000.0),
        small(3, {"n2": (0, 1)}), small(4, {"n2": (2, 3)}, left=90_000.0),
        waiting(5, queue="short", gpus=4, predicted=runs_for(1_000.0)),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert preempted_for(plan) == {"j-2": "j-5", "j-4": "j-5"}
    assert not moved(plan), "where it goes on is not free yet"
    for victim in plan.preemptions:
        stop = StopRequested(at=NOW, reason=EndReason.PREEMPTED, for_job="j-5")
        stopping = advance(snapshot.jobs[victim.job_id], stop).job
        happened(snapshot, advance(stopping, Ended(at=NOW, reason=EndReason.EXIT_CODE)).job)
    small_one = waiting(6, at=1.0, queue="short", gpus=1, predicted=runs_for(50_000.0))
    happened(snapshot, small_one)
    then = schedule(snapshot, NOW + 1)
    assert len(moved(then)) == 1
    assert (preempted_for(then), started(then)) == ({}, {}), "no other job takes the freed GPUs"


def test_a_gang_gets_whole_nodes_by_moves() -> None:
    snapshot = snapshot_of(
        rules(), SHORT, *(node(f"n{number}", 4) for number in range(1, 5)),
        small(1, {"n1": (0,)}), small(2, {"n2": (0,)}), small(3, {"n3": (0, 1)}), small(4, {"n4": (0, 1)}),
        waiting(5, queue="short", gpus=4, nodes=2, predicted=runs_for(5_000.0)),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert {*moved(plan)} == {"j-1", "j-2"}
    assert {*moved(plan).values()} <= {"n3", "n4"}


def test_a_move_that_is_stopped_by_its_owner_or_lost_with_its_node_does_not_go_on() -> None:
    snapshot = snapshot_of(rules(), *halves())
    (move,) = schedule(snapshot, NOW).preemptions
    assert move.to is not None
    moving = advance(snapshot.jobs["j-2"], MoveRequested(at=NOW, allocation=move.to, for_job="j-3")).job
    stopped = advance(moving, StopRequested(at=NOW + 1, reason=EndReason.STOPPED_BY_USER)).job
    assert advance(stopped, Ended(at=NOW + 2, reason=EndReason.EXIT_CODE)).job.state is JobState.STOPPED
    failing = advance(moving, StopRequested(at=NOW + 1, reason=EndReason.NODE_LOST, failed=("n1",))).job
    lost = advance(failing, Ended(at=NOW + 2, reason=EndReason.EXIT_CODE)).job
    assert (lost.state, lost.avoid_nodes, lost.allocation) == (JobState.QUEUED, ("n1",), None)
