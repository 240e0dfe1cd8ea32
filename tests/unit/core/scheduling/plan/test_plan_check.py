"""A plan is checked before it happens: what a contradiction looks like, and that the scheduler makes none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.core.model import WHOLE, Allocation, Elastic, Grant, NodeState, Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.limits.claims import Claim
from corral.core.scheduling.plan.plan import (
    Plan,
    PlannedStart,
    Preemption,
    PreemptionRule,
    Resize,
    ResizeCause,
    Start,
)
from corral.core.scheduling.plan.plan_check import MOST_PROBLEMS, PlanRejected, check_plan
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.waiting_lines import line_of
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.dense import DenseHistory
from tests.unit.core.scheduling.preemption.test_moves import NOW, SHORT, rules, runs_for, small


def on(name: str, *indexes: int, milli: int = WHOLE, **values: int) -> Allocation:
    gpus = tuple(f"{name}/{index}" for index in indexes)
    return Allocation(grants=(Grant(node=name, gpus=gpus, gpu_milli=milli, **values),), model="A10")


def start(job: str, allocation: Allocation) -> Start:
    return Start(job_id=job, allocation=allocation)


def preempt(job: str, for_job: str, to: Allocation | None = None) -> Preemption:
    rule = PreemptionRule.ORDER if to is None else PreemptionRule.MOVE
    return Preemption(job_id=job, for_job=for_job, rule=rule, lost_gpu_seconds=0.0, detail="", to=to)


def resize(job: str, allocation: Allocation) -> Resize:
    return Resize(job_id=job, allocation=allocation, cause=ResizeCause.OTHERS)


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    """n1: two of four GPUs are free. n2: one is free, and one is half taken. n3 is cordoned."""
    return snapshot_of(
        Queue(name="default", policy="fcfs"),
        node("n1", 4, cpu_milli=8000),
        node("n2", 4),
        node("n3", 4, state=NodeState.CORDONED),
        running(1, {"n1": (0,)}),
        running(2, {"n1": (1,)}, elastic=Elastic(min_gpus=1, max_gpus=2)),
        running(3, {"n2": (0, 1)}),
        running(4, {"n2": (2,)}, gpu_milli=500),
        running(5, {"n2": (2,)}, gpu_milli=100, preemptible=False),
        waiting(10, gpus=1),
        waiting(11, gpus=2),
        waiting(12, gpu_milli=400),
        waiting(13, gpus=1, nodes=2),
        waiting(14, gpus=1, cpu_milli=5000),
        waiting(15, gpus=1, cpu_milli=5000),
    )


def planned(snapshot: ClusterSnapshot, job_id: str, held: Allocation) -> PlannedStart:
    job = snapshot.jobs[job_id]
    return PlannedStart(job_id=job_id, line=line_of(job), at=NOW, nodes=("n1",), held=held)


def test_a_plan_without_problems(snapshot: ClusterSnapshot) -> None:
    plan = Plan(
        at=NOW,
        starts=(start("j-10", on("n1", 2)), start("j-12", on("n2", 2, milli=400))),
        resizes=(resize("j-2", on("n1", 1, 3)),),
        preemptions=(preempt("j-1", "j-11", on("n2", 3)), preempt("j-3", "j-11")),
        planned=(planned(snapshot, "j-11", Allocation(grants=())),),
    )
    assert check_plan(snapshot, plan) == []
    assert check_plan(snapshot, Plan(at=NOW)) == []


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(at=NOW, preemptions=(preempt("j-3", "j-11"), preempt("j-3", "j-10"))), "j-3 is preempted and preempted"),
        (
            Plan(at=NOW, preemptions=(preempt("j-1", "j-11"), preempt("j-1", "j-10", on("n2", 3)))),
            "j-1 is preempted and moved",
        ),
        (
            Plan(at=NOW, starts=(start("j-10", on("n1", 2)), start("j-10", on("n1", 3)))),
            "j-10 is started and started",
        ),
        (
            Plan(at=NOW, preemptions=(preempt("j-2", "j-10"),), resizes=(resize("j-2", on("n1", 1)),)),
            "j-2 is resized and preempted",
        ),
        (Plan(at=NOW, starts=(start("j-99", on("n1", 2)),)), "j-99 is started and does not exist"),
        (Plan(at=NOW, starts=(start("j-1", on("n1", 2)),)), "j-1 is started and is running"),
        (Plan(at=NOW, starts=(start("j-10", on("n9", 2)),)), "node n9, which does not exist"),
        (Plan(at=NOW, starts=(start("j-10", on("n1", 7)),)), "n1/7 on n1, which does not exist"),
        (Plan(at=NOW, starts=(start("j-10", on("n3", 0)),)), "n3, which is cordoned"),
        (Plan(at=NOW, starts=(start("j-10", on("n1", 2, 3)),)), "asks for 1 GPU of each node"),
        (Plan(at=NOW, starts=(start("j-13", on("n1", 2)),)), "asks for 2 nodes and gets n1"),
        (Plan(at=NOW, starts=(start("j-10", on("n1", 2, milli=500)),)), "gets 500 thousandths of a GPU"),
        (Plan(at=NOW, starts=(start("j-12", on("n1", 0, milli=400)),)), "400 thousandths of n1/0 on n1 are given"),
        (Plan(at=NOW, starts=(start("j-14", on("n1", 2)),)), "other CPUs or memory of n1"),
        (
            Plan(
                at=NOW,
                starts=(start("j-14", on("n1", 2, cpu_milli=5000)), start("j-15", on("n1", 3, cpu_milli=5000))),
            ),
            "10000 thousandths of CPUs on n1 are given",
        ),
        (
            Plan(at=NOW, starts=(start("j-10", on("n2", 3)),), preemptions=(preempt("j-1", "j-11", on("n2", 3)),)),
            "2000 thousandths of n2/3",
        ),
        (
            Plan(at=NOW, starts=(start("j-10", on("n1", 2)),), resizes=(resize("j-2", on("n1", 1, 2)),)),
            "2000 thousandths of n1/2",
        ),
        (Plan(at=NOW, resizes=(resize("j-1", on("n1", 0)),)), "is not elastic"),
        (Plan(at=NOW, resizes=(resize("j-2", on("n2", 3)),)), "leaves its node"),
        (Plan(at=NOW, resizes=(resize("j-2", on("n1", 1, 2, 3)),)), "asks for 1 to 2 GPUs"),
        (Plan(at=NOW, preemptions=(preempt("j-5", "j-10"),)), "j-5 is preempted and must not be"),
        (Plan(at=NOW, preemptions=(preempt("j-10", "j-11"),)), "j-10 is preempted and is queued"),
        (Plan(at=NOW, preemptions=(preempt("j-1", "j-3"),)), "for j-3, which does not wait"),
        (Plan(at=NOW, preemptions=(preempt("j-1", "j-10", on("n1", 2)),)), "moved to the node that it is on"),
        (Plan(at=NOW, claims=(Claim(job_id="j-98", rule="queue-limit", queue="default", at=NOW),)), "j-98 has a claim"),
    ],
)
def test_contradictions_of_a_plan_are_named(snapshot: ClusterSnapshot, plan: Plan, words: str) -> None:
    problems = check_plan(snapshot, plan)
    assert any(words in problem for problem in problems), problems


def test_a_gang_is_resized_to_one_number_on_all_its_nodes() -> None:
    """Two of four GPUs of each node are free."""
    gang = running(1, {"n1": (0, 1), "n2": (0, 1)}, elastic=Elastic(min_gpus=1, max_gpus=3))
    snapshot = snapshot_of(node("n1", 4), node("n2", 4), gang)

    def problems(*indexes: tuple[int, ...]) -> list[str]:
        grants = tuple(on(f"n{n}", *each).grants[0] for n, each in enumerate(indexes, start=1))
        allocation = Allocation(grants=grants, model="A10")
        return check_plan(snapshot, Plan(at=NOW, resizes=(resize("j-1", allocation),)))

    assert problems((0, 1, 2), (0, 1, 3)) == []
    assert problems((0,), (1,)) == []
    assert "different numbers of GPUs" in problems((0, 1, 2), (0, 1))[0]
    assert "asks for 1 to 3 GPUs" in problems((0, 1, 2, 3), (0, 1, 2, 3))[0]
    assert "leaves its node" in problems((0, 1))[0]


def test_gpus_kept_for_a_job_are_not_given_to_another(snapshot: ClusterSnapshot) -> None:
    kept = planned(snapshot, "j-11", on("n1", 2, 3))
    assert check_plan(snapshot, Plan(at=NOW, planned=(kept,))) == []
    given = Plan(at=NOW, planned=(kept,), starts=(start("j-10", on("n1", 3)),))
    assert "2000 thousandths of n1/3" in check_plan(snapshot, given)[0]
    both = Plan(at=NOW, planned=(replace(kept, job_id="j-10"),), starts=(start("j-10", on("n2", 3)),))
    assert "j-10 is started and given a planned start" in check_plan(snapshot, both)[0]
    gone = Plan(at=NOW, planned=(replace(kept, job_id="j-97"),))
    assert "j-97 is given a planned start and does not wait" in check_plan(snapshot, gone)[0]


def test_a_list_of_problems_has_an_end_and_names_the_snapshot(snapshot: ClusterSnapshot) -> None:
    plan = Plan(at=NOW, starts=tuple(start(f"j-{number}", on("n1", 2)) for number in range(100, 200)))
    problems = check_plan(snapshot, plan)
    assert len(problems) == MOST_PROBLEMS
    rejected = PlanRejected(problems[:2], "abc123")
    assert (rejected.digest, rejected.problems) == ("abc123", problems[:2])
    assert "snapshot abc123" in str(rejected)
    assert problems[1] in str(rejected)


def test_a_job_that_is_preempted_for_one_is_not_moved_for_another_in_the_same_cycle() -> None:
    """Three small jobs on three nodes, and two whole-node jobs that each want one of them out of the way."""
    snapshot = snapshot_of(
        rules(),
        SHORT,
        *(node(f"n{number}", 4) for number in range(1, 5)),
        *(small(number, {f"n{number}": (0, 1)}, left=100.0 * number) for number in range(1, 5)),
        waiting(11, queue="short", gpus=4, predicted=runs_for(5_000.0)),
        waiting(12, queue="short", gpus=4, predicted=runs_for(5_001.0)),
        waiting(13, queue="short", gpus=4, predicted=runs_for(10.0)),
    )
    plan = schedule(snapshot, NOW)
    assert plan.preemptions
    assert check_plan(snapshot, plan) == []


@settings(max_examples=max(2, settings().max_examples // 20))
@given(st.integers(0, 2**32))
def test_no_plan_of_a_long_and_dense_history_contradicts_itself(seed: int) -> None:
    history = DenseHistory(seed=seed, jobs=200)
    history.run()
    assert history.problems == []
