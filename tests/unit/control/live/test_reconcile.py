"""Bringing the store and the engine together: after events, and after either side was away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.errors import Forbidden, InUse, NotFound, WrongState
from corral.control.fleet import node_actions
from corral.control.jobs import jobs
from corral.control.live.reconcile import SETTLE_SECONDS, reconcile
from corral.control.monitoring import gpu_health
from corral.control.ports import AttemptPhase, Observation, Store
from corral.core.jobs.backoff import BACKOFF_SECONDS
from corral.core.jobs.lifecycle import Launch, Stop
from corral.core.model import EndReason, GpuHealth, JobState, NodeState
from corral.core.scheduling.limits.hold_rules import all_reasons
from corral.core.snapshot.journal import digest_of
from tests.unit.control.tenants import assert_state_is_stored
from tests.unit.control.world import ANN, ROOT, TWO_NODES, Desk, draft, status
from tests.unit.core.builders import node

RUNNING, ENDED = AttemptPhase.RUNNING, AttemptPhase.ENDED


def planned(desk: Desk, *names: str) -> list[str]:
    """Jobs that were planned; the engine has no order yet."""
    submitted = desk.submit(*(draft(name) for name in names))
    assert desk.cycle() == [job.id for job in submitted]
    desk.now += 10.0
    return [job.id for job in submitted]


# -------------------------------------------------------------------------------------------- reports


def test_an_attempt_comes_up_and_ends(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.hear(desk.job(job_id), RUNNING, at=1011.0)
    assert (desk.job(job_id).state, desk.job(job_id).started_at) == (JobState.RUNNING, 1011.0)
    desk.hear(desk.job(job_id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.job(job_id).state is JobState.COMPLETED
    assert desk.forgotten == [f"{job_id}.1"]
    assert desk.actions(job_id)[1:] == ["job.planned", "job.running", "job.completed"]


def test_news_of_an_earlier_attempt_changes_nothing(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    first = desk.job(job_id)
    desk.hear(first, ENDED, EndReason.LOST)
    desk.now += 60.0
    assert desk.cycle() == [job_id]
    second = desk.job(job_id)
    assert second.attempt == 2
    for phase in (RUNNING, ENDED):
        desk.hear(first, phase, EndReason.EXIT_CODE, exit_code=0)
        assert desk.job(job_id) == second
    assert desk.forgotten == [f"{job_id}.1"], "its end is recorded, so the engine may forget it"


def test_repeated_and_unknown_news_change_nothing(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.hear(desk.job(job_id), RUNNING)
    up = desk.job(job_id)
    desk.hear(up, RUNNING, at=desk.now + 5)
    assert desk.job(job_id) == up
    for attempt_id in ("j-77.1", "nonsense", f"{job_id}.9"):
        desk.hear(up, ENDED, EndReason.LOST, attempt_id=attempt_id)
    assert desk.job(job_id) == up
    desk.hear(up, ENDED, EndReason.EXIT_CODE, exit_code=0)
    over = desk.job(job_id)
    desk.hear(up, ENDED, EndReason.EXIT_CODE, exit_code=1)
    assert desk.job(job_id) == over


def test_an_end_that_overtakes_the_start_is_an_end(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.hear(desk.job(job_id), ENDED, EndReason.LAUNCH_ERROR, message="no such program")
    job = desk.job(job_id)
    assert (job.state, job.retries, job.message) == (JobState.FAILED, 0, "no such program")


# -------------------------------------------------------------------------------------------- after an absence


def test_an_attempt_that_is_still_starting_is_neither_up_nor_missing(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    starting = status(desk.job(job_id).attempt_id, AttemptPhase.STARTING, desk.now)
    desk.observe(*TWO_NODES, attempts=[starting], at=desk.now)
    assert (desk.job(job_id).state, desk.instructions) == (JobState.STARTING, [])
    desk.do(jobs.stop, ANN, job_id)
    desk.observe(*TWO_NODES, attempts=[starting], at=desk.now)
    assert desk.job(job_id).state is JobState.STOPPING, "its end is the engine's to tell"
    desk.observe(*TWO_NODES, attempts=[replace(starting, attempt_id="j-99.1")], at=0.0)
    assert desk.instructions == [Stop(attempt_id="j-99.1", grace_seconds=0.0, cluster="local")], "no job holds it"


def test_a_starting_job_that_the_engine_misses_is_launched_again(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.observe(*TWO_NODES)
    assert desk.instructions == [Launch(attempt_id=f"{job_id}.1")]
    assert desk.job(job_id).state is JobState.STARTING


def test_a_job_younger_than_the_observation_is_left_alone(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.observe(*TWO_NODES, at=999.0)
    assert desk.instructions == []
    assert desk.job(job_id).state is JobState.STARTING


def test_a_running_job_that_the_engine_misses_is_lost_and_retried_after_a_pause(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.now += 10.0
    desk.observe(*TWO_NODES)
    lost = desk.job(job.id)
    assert (lost.state, lost.faults, lost.not_before) == (JobState.QUEUED, 1, desk.now + BACKOFF_SECONDS)
    assert desk.cycle() == []
    assert desk.state.plan.wake_at == lost.not_before
    desk.now = lost.not_before
    assert desk.cycle() == [job.id]
    assert desk.instructions == [Launch(attempt_id=f"{job.id}.2")]
    with desk.store.read() as tx:
        assert [attempt.end_reason for attempt in tx.attempts.of_job(job.id)] == [EndReason.LOST, None]


def test_a_job_that_its_cluster_gives_back_leaves_its_place_to_others_and_says_why(desk: Desk) -> None:
    first, second = desk.submit(draft("first", gpus=4, nodes=2), draft("second", gpus=4, nodes=2))
    assert desk.cycle() == [first.id]
    words = "Slurm did not begin it (job 7 waited: QOSMaxGRESPerUser)"
    desk.now += 20.0
    desk.hear(desk.job(first.id), ENDED, EndReason.PREEMPTED, message=words)
    assert desk.cycle() == [first.id], "others may only have been quicker"
    desk.now += 20.0
    desk.hear(desk.job(first.id), ENDED, EndReason.PREEMPTED, message=words)
    back = desk.job(first.id)
    assert (back.state, back.retries, back.not_before) == (JobState.QUEUED, 0, desk.now + BACKOFF_SECONDS)
    (reason,) = all_reasons(desk.state.snapshot, back, desk.now)
    assert reason.rule == "given-back"
    assert words in reason.detail
    assert desk.cycle() == [second.id]
    assert desk.loaded().snapshot.jobs[first.id] == back, "a restart forgets nothing of it"


def test_without_retries_a_lost_job_has_failed(desk: Desk) -> None:
    (job,) = desk.started(draft("training", max_retries=0))
    desk.now += 10.0
    desk.observe(*TWO_NODES)
    assert (desk.job(job.id).state, desk.job(job.id).end_reason) == (JobState.FAILED, EndReason.LOST)


def test_an_attempt_that_no_job_holds_is_stopped(desk: Desk) -> None:
    desk.observe(*TWO_NODES, attempts=[status("j-5.1", RUNNING, 900.0)])
    assert desk.instructions == [Stop(attempt_id="j-5.1", grace_seconds=0.0, cluster="local")]


def test_attempts_that_ended_while_the_server_was_away_are_recorded(desk: Desk) -> None:
    done, failed = desk.started(draft("done"), draft("failed"))
    desk.state = desk.loaded()
    desk.observe(
        *TWO_NODES,
        attempts=[
            status(done.attempt_id, ENDED, 1500.0, reason=EndReason.EXIT_CODE, exit_code=0),
            status(failed.attempt_id, ENDED, 1600.0, reason=EndReason.OOM_KILLED, message="out of memory"),
        ],
    )
    assert (desk.job(done.id).state, desk.job(done.id).ended_at) == (JobState.COMPLETED, 1500.0)
    assert (desk.job(failed.id).state, desk.job(failed.id).end_reason) == (JobState.FAILED, EndReason.OOM_KILLED)
    assert sorted(desk.forgotten) == sorted([done.attempt_id, failed.attempt_id])
    assert desk.state.snapshot.held.total_gpu_milli == 0


def test_a_job_that_came_up_while_the_server_was_away_is_adopted(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.state = desk.loaded()
    desk.observe(*TWO_NODES, attempts=[status(f"{job_id}.1", RUNNING, 1005.0)])
    assert (desk.job(job_id).state, desk.job(job_id).started_at) == (JobState.RUNNING, 1005.0)
    assert desk.instructions == []


def test_a_job_stopped_before_its_launch_just_ends(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.do(jobs.stop, ANN, job_id)
    desk.observe(*TWO_NODES)
    assert (desk.job(job_id).state, desk.job(job_id).end_reason) == (JobState.STOPPED, EndReason.STOPPED_BY_USER)


# -------------------------------------------------------------------------------------------- nodes


N1, N2 = TWO_NODES
DOWN_N1 = replace(N1, state=NodeState.DOWN)


def states(desk: Desk) -> dict[str, NodeState]:
    return {node.id: node.state for node in desk.state.snapshot.nodes.values()}


def test_a_node_that_is_gone_is_down_and_keeps_what_was_decided_about_it(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    with desk.store.write() as tx:
        tx.fleet.save_gpus([replace(N1.gpus[1], pool="night")])
    desk.state = desk.loaded()
    desk.now += 10.0
    for _ in range(2):
        desk.observe(N2)
        assert states(desk) == {"n1": NodeState.DOWN, "n2": NodeState.READY}
    lost = desk.job(job.id)
    assert (lost.state, lost.avoid_nodes, lost.message) == (JobState.QUEUED, ("n1",), "node n1 is down")
    desk.observe(N1, N2)
    assert states(desk)["n1"] is NodeState.READY
    assert desk.state.snapshot.nodes["n1"].gpus[1].pool == "night"
    assert desk.actions("n1") == ["node.added", "node.down", "node.up"]
    assert_state_is_stored(desk)


def test_an_idle_node_that_is_gone_is_down_too(desk: Desk) -> None:
    desk.observe(N2)
    assert states(desk) == {"n1": NodeState.DOWN, "n2": NodeState.READY}
    assert desk.actions("n1") == ["node.added", "node.down"]


def test_a_node_that_its_engine_reports_as_down_loses_its_jobs_which_run_elsewhere(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.now += 10.0
    up = status(job.attempt_id, RUNNING, 1000.0)
    desk.observe(DOWN_N1, N2, attempts=[up])
    assert desk.instructions == [Stop(attempt_id=job.attempt_id, grace_seconds=30.0)]
    stopping = desk.job(job.id)
    assert (stopping.state, stopping.stopping_for) == (JobState.STOPPING, EndReason.NODE_LOST)
    desk.observe(DOWN_N1, N2, attempts=[up])
    assert desk.instructions == [], "once is enough"
    desk.hear(stopping, ENDED, EndReason.EXIT_CODE, exit_code=137)
    back = desk.job(job.id)
    assert (back.state, back.retries, back.faults, back.avoid_nodes) == (JobState.QUEUED, 0, 1, ("n1",))
    desk.now = back.not_before
    assert desk.cycle() == [job.id]
    moved = desk.job(job.id).allocation
    assert moved is not None
    assert [grant.node for grant in moved.grants] == ["n2"]
    with desk.store.read() as tx:
        first = tx.attempts.of_job(job.id)[0]
    assert (first.end_reason, first.message) == (EndReason.NODE_LOST, "node n1 is down")
    assert "job.moving" in desk.actions(job.id)


def test_only_the_lost_node_of_a_gang_is_avoided(desk: Desk) -> None:
    (gang,) = desk.started(draft("gang", gpus=2, nodes=2))
    desk.observe(DOWN_N1, N2, attempts=[status(gang.attempt_id, RUNNING, 1000.0)])
    desk.hear(desk.job(gang.id), ENDED, EndReason.NODE_LOST)
    assert desk.job(gang.id).avoid_nodes == ("n1",)


def test_a_node_that_is_back_is_trusted_again_after_a_while(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.hear(job, ENDED, EndReason.NODE_LOST, message="node n1 went down")
    desk.observe(DOWN_N1, N2)
    desk.do(node_actions.cordon, ROOT, "n2")
    desk.now += SETTLE_SECONDS - 1
    desk.observe(N1, N2)
    assert desk.job(job.id).avoid_nodes == ("n1",)
    assert desk.cycle() == []
    desk.now += 1
    desk.observe(N1, N2)
    assert desk.job(job.id).avoid_nodes == ()
    assert desk.cycle() == [job.id], "n1 is the only place left"


def test_a_job_that_was_planned_on_a_node_that_is_down_by_then_never_starts_there(desk: Desk) -> None:
    (job_id,) = planned(desk, "training")
    desk.observe(DOWN_N1, N2)
    assert desk.instructions == []
    assert (desk.job(job_id).state, desk.job(job_id).avoid_nodes) == (JobState.QUEUED, ("n1",))


def test_an_operators_word_about_a_node_outlasts_a_time_of_being_down(desk: Desk) -> None:
    desk.do(node_actions.drain, ROOT, "n1")
    desk.observe(DOWN_N1, N2)
    assert states(desk)["n1"] is NodeState.DOWN
    desk.observe(N1, N2)
    assert states(desk)["n1"] is NodeState.DRAINING
    desk.observe(DOWN_N1, N2)
    assert desk.do(node_actions.uncordon, ROOT, "n1").state is NodeState.DOWN
    assert desk.do(node_actions.cordon, ROOT, "n1").withheld is NodeState.CORDONED
    desk.state = desk.loaded()
    desk.observe(N1, N2)
    assert states(desk)["n1"] is NodeState.CORDONED
    assert desk.do(node_actions.uncordon, ROOT, "n1").state is NodeState.READY
    assert_state_is_stored(desk)


def test_node_withheld_by_its_engine_is_not_released_by_an_operator(desk: Desk) -> None:
    desk.observe(replace(N1, state=NodeState.DRAINING), N2)
    assert desk.do(node_actions.uncordon, ROOT, "n1").state is NodeState.DRAINING
    desk.do(node_actions.cordon, ROOT, "n1")
    desk.observe(replace(N1, state=NodeState.DRAINING), N2)
    assert states(desk)["n1"] is NodeState.CORDONED


WORDS = st.sampled_from([node_actions.cordon, node_actions.drain, node_actions.uncordon])
SEEN = st.sampled_from([NodeState.READY, NodeState.DOWN, None])
HISTORIES = st.lists(st.one_of(WORDS, SEEN), max_size=12)


@given(HISTORIES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_down_wins_and_otherwise_the_last_word_stands(store: Store, history: list[Any]) -> None:
    desk = Desk(store)
    desk.observe(*TWO_NODES)
    desk.do(node_actions.uncordon, ROOT, "n1")
    word, is_down = NodeState.READY, False
    said = {
        node_actions.cordon: NodeState.CORDONED,
        node_actions.drain: NodeState.DRAINING,
        node_actions.uncordon: NodeState.READY,
    }
    for step in history:
        if step in said:
            desk.do(step, ROOT, "n1")
            word = said[step]
        else:
            desk.observe(*([] if step is None else [replace(N1, state=step)]), N2)
            is_down = step is not NodeState.READY
        node = desk.state.snapshot.nodes["n1"]
        assert (node.state, node.withheld) == (NodeState.DOWN if is_down else word, word)
    assert_state_is_stored(desk)


def test_a_node_that_is_gone_for_good_is_removed_by_an_operator_only(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    with pytest.raises(Forbidden):
        desk.do(node_actions.remove, ANN, "n1")
    with pytest.raises(NotFound):
        desk.do(node_actions.remove, ROOT, "n9")
    with pytest.raises(InUse, match=f"job {job.id} \\(training\\) of ann"):
        desk.do(node_actions.remove, ROOT, "n1")
    desk.observe(DOWN_N1, N2)
    desk.hear(desk.job(job.id), ENDED, EndReason.NODE_LOST)
    with pytest.raises(WrongState, match="still there: its engine reports it as down"):
        desk.do(node_actions.remove, ROOT, "n1")
    desk.state = desk.loaded()
    with pytest.raises(WrongState, match="not been observed yet"):
        desk.do(node_actions.remove, ROOT, "n1")
    desk.observe(N2)
    desk.do(node_actions.remove, ROOT, "n1")
    assert list(desk.state.snapshot.nodes) == ["n2"]
    assert desk.actions("n1")[-1] == "node.removed"
    assert_state_is_stored(desk)
    desk.observe(N1, N2)
    assert states(desk)["n1"] is NodeState.READY, "a node that comes back is a new one"


def test_decisions_of_operators_outlive_an_observation(desk: Desk) -> None:
    desk.do(node_actions.cordon, ROOT, "n1")
    suspect = replace(TWO_NODES[1].gpus[0], health=GpuHealth.SUSPECT, pool="night")
    with desk.store.write() as tx:
        tx.fleet.save_gpus([suspect])
    desk.state = desk.loaded()
    desk.observe(node("n1", gpus=4, labels=(("zone", "a"),)), TWO_NODES[1])
    known = desk.state.snapshot.nodes
    assert (known["n1"].state, known["n1"].labels) == (NodeState.CORDONED, (("zone", "a"),))
    assert known["n2"].gpus[0] == suspect
    assert desk.do(gpu_health.reset, ROOT, suspect.id).health is GpuHealth.HEALTHY
    desk.do(node_actions.uncordon, ROOT, "n1")
    assert digest_of(desk.loaded().snapshot.contents()) == digest_of(desk.state.snapshot.contents())


def test_a_cordoned_node_takes_nothing_new_and_keeps_what_runs(desk: Desk) -> None:
    (running,) = desk.started(draft("running", gpus=4))
    assert running.allocation is not None
    desk.do(node_actions.cordon, ROOT, "n1")
    desk.do(node_actions.drain, ROOT, "n2")
    desk.submit(draft("waiting"))
    assert desk.cycle() == []
    assert desk.job(running.id).state is JobState.RUNNING
    desk.do(node_actions.uncordon, ROOT, "n2")
    assert desk.cycle() == ["j-2"]


def test_only_operators_touch_nodes_and_only_those_that_are_there(desk: Desk) -> None:
    with pytest.raises(Forbidden):
        desk.do(node_actions.cordon, ANN, "n1")
    with pytest.raises(NotFound):
        desk.do(node_actions.cordon, ROOT, "n9")


def test_two_clusters_cannot_have_a_node_of_the_same_name(desk: Desk) -> None:
    twin, other = node("n1", gpus=8), node("n9", gpus=8)
    desk.do(reconcile, "far", Observation(nodes=(twin, other), attempts=()), desk.now)
    nodes = desk.state.snapshot.nodes
    assert {name: found.cluster for name, found in nodes.items()} == {"n1": "local", "n2": "local", "n9": "far"}
    assert len(nodes["n1"].gpus) == 4
    assert desk.state.left_out["far"] == {"n1"}
    # It is the other's as soon as the first has it no more.
    desk.observe(TWO_NODES[1])
    desk.do(reconcile, "far", Observation(nodes=(twin, other), attempts=()), desk.now)
    assert (desk.state.snapshot.nodes["n1"].cluster, desk.state.left_out["far"]) == ("far", frozenset())
