"""The victims of each preempting job: one cycle at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.core.jobs.lifecycle import Ended, StopRequested, advance
from corral.core.model import (
    Elastic,
    EndReason,
    Job,
    JobState,
    Prediction,
    Queue,
)
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.scheduling.plan.plan import Plan, PreemptionRule
from corral.core.snapshot.changes import PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from tests.unit.core.builders import node, promises, running, snapshot_of, started, waiting

NOW = 10_000.0


def rules(**values: Any) -> PutRules:
    preemption = PreemptionRules(**{"enabled": True, "min_run_seconds": 600.0, **values})
    return PutRules(limits=Limits(), score_time_constant=3600.0, preemption=preemption)


def preempted_for(plan: Plan) -> dict[str, str]:
    return {preemption.job_id: preemption.for_job for preemption in plan.preemptions}


def runs_for(seconds: float) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=3)


LAB = Queue(name="lab", policy="fcfs", guaranteed_gpus=4)
REST = Queue(name="rest", policy="fcfs")
URGENT = Queue(name="urgent", policy="priority", preempts=True)
SHORT = Queue(name="short", policy="shortest", preempts=True)


# ---------------------------------------------------------------- guarantees


def test_borrowed_gpus_come_back_to_the_queue_with_the_guarantee() -> None:
    snapshot = snapshot_of(
        rules(), LAB, REST, node("n1", 4),
        running(1, {"n1": (0, 1)}, queue="rest", grace_seconds=30.0),
        running(2, {"n1": (2, 3)}, queue="rest", grace_seconds=20.0, checkpointed_at=9_000.0),
        waiting(3, queue="lab", gpus=2),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert preempted_for(plan) == {"j-2": "j-3"}, "it has saved lately, and loses less"
    (preemption,) = plan.preemptions
    assert preemption.rule is PreemptionRule.GUARANTEE
    assert preemption.lost_gpu_seconds == 2_000.0
    assert "4 GPUs guaranteed and holds 0" in preemption.detail
    assert promises(plan) == {"j-3": NOW + 20.0}


def test_a_job_beyond_the_guarantee_waits() -> None:
    snapshot = snapshot_of(
        rules(), LAB, REST, node("n1", 8),
        running(1, {"n1": (0, 1, 2)}, queue="lab"), running(2, {"n1": (3, 4, 5, 6, 7)}, queue="rest"),
        waiting(3, queue="lab", gpus=2),
    )  # fmt: skip
    assert not schedule(snapshot, NOW).preemptions, "3 held and 2 asked for are more than 4"


def test_gpus_within_the_own_guarantee_are_not_borrowed() -> None:
    other = Queue(name="rest", policy="fcfs", guaranteed_gpus=2)
    snapshot = snapshot_of(
        rules(), LAB, other, node("n1", 6),
        running(1, {"n1": (0, 1)}, queue="rest", allocated_at=0.0),
        running(2, {"n1": (2, 3, 4, 5)}, queue="rest", allocated_at=100.0, started_at=100.0),
        waiting(3, queue="lab", gpus=2),
    )  # fmt: skip
    assert preempted_for(schedule(snapshot, NOW)) == {"j-2": "j-3"}, "the older one is covered by the guarantee"


def test_entitled_lines_go_first_however_young_they_are() -> None:
    snapshot = snapshot_of(
        rules(), LAB, REST, node("n1", 2), waiting(1, queue="rest", gpus=2), waiting(2, queue="lab", gpus=2)
    )
    assert started(schedule(snapshot, NOW)) == {"j-2": ["n1"]}


def test_time_waited_counts_by_the_weight_of_the_queue() -> None:
    heavy = Queue(name="heavy", policy="fcfs", weight=3.0)
    jobs = waiting(1, queue="rest", gpus=2, at=NOW - 100), waiting(2, queue="heavy", gpus=2, at=NOW - 50)
    assert started(schedule(snapshot_of(REST, heavy, node("n1", 2), *jobs), NOW)) == {"j-2": ["n1"]}
    light = replace(heavy, weight=1.0)
    assert started(schedule(snapshot_of(REST, light, node("n1", 2), *jobs), NOW)) == {"j-1": ["n1"]}


def test_a_job_that_cannot_be_preempted_leaves_alone_what_others_are_owed() -> None:
    snapshot = snapshot_of(
        rules(), LAB, REST, node("n1", 6),
        waiting(1, queue="rest", gpus=3, preemptible=False), waiting(2, queue="rest", gpus=3),
    )  # fmt: skip
    assert started(schedule(snapshot, NOW)) == {"j-2": ["n1"]}


# ---------------------------------------------------------------- order


def test_in_a_queue_whose_order_preempts_the_more_important_goes_first() -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 2),
        running(1, {"n1": (0,)}, queue="urgent", priority=5), running(2, {"n1": (1,)}, queue="urgent", priority=9),
        waiting(3, queue="urgent", gpus=1, priority=1),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert set(preempted_for(plan).values()) == {"j-3"}
    assert len(plan.preemptions) == 1
    assert plan.preemptions[0].rule is PreemptionRule.ORDER
    assert "priority 1" in plan.preemptions[0].detail


def test_among_equals_no_job_is_preempted() -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 1), running(1, {"n1": (0,)}, queue="urgent"), waiting(2, queue="urgent", gpus=1)
    )
    assert not schedule(snapshot, NOW).preemptions


@pytest.mark.parametrize(("margin", "expected"), [(0.0, True), (0.4, True), (0.6, False)])
def test_under_shortest_what_is_left_counts_and_a_margin_of_it(margin: float, expected: bool) -> None:
    """The one that runs has 20,000 of 30,000 s left, the one that waits takes 10,000: half of it is between them."""
    put = replace(rules(margin=margin), ordering=OrderingRules(unknown_margin=0.0))
    snapshot = snapshot_of(
        put, SHORT, node("n1", 1),
        running(1, {"n1": (0,)}, queue="short", predicted=runs_for(30_000.0), aged_from=0.0),
        waiting(2, queue="short", gpus=1, predicted=runs_for(10_000.0), aged_from=0.0, at=5_000.0),
    )  # fmt: skip
    assert bool(schedule(snapshot, NOW).preemptions) is expected


@pytest.mark.parametrize(("limit", "expected"), [(None, False), (30_000.0, True)])
def test_a_job_without_a_time_limit_is_preempted_for_a_large_lead_only(limit: float | None, expected: bool) -> None:
    """Half of what is left lies between the two, and what is left of a job without a limit is uncertain."""
    snapshot = snapshot_of(
        rules(), SHORT, node("n1", 1),
        running(1, {"n1": (0,)}, queue="short", predicted=runs_for(30_000.0), aged_from=0.0, time_limit_seconds=limit),
        waiting(2, queue="short", gpus=1, predicted=runs_for(10_000.0), aged_from=0.0, at=5_000.0),
    )  # fmt: skip
    assert bool(schedule(snapshot, NOW).preemptions) is expected


def test_a_job_waits_a_little_before_it_preempts_by_run_time() -> None:
    put = rules(patience_seconds=300.0)
    jobs = [
        running(1, {"n1": (0,)}, queue="short", predicted=runs_for(90_000.0), aged_from=0.0),
        waiting(2, queue="short", gpus=1, predicted=runs_for(60.0), at=NOW),
    ]
    snapshot = snapshot_of(put, SHORT, node("n1", 1), *jobs)
    plan = schedule(snapshot, NOW + 299.0)
    assert not plan.preemptions
    assert plan.wake_at == NOW + 300.0, "nothing else happens, and a cycle is due then"
    why = explain(snapshot, plan, snapshot.jobs["j-2"], NOW + 240.0).summary
    assert "jobs of queue short wait for 5m before they preempt, and it waits for 1m more" in why
    assert preempted_for(schedule(snapshot, NOW + 300.0)) == {"j-1": "j-2"}
    pinned = snapshot_of(put, SHORT, node("n1", 1), jobs[0], replace(jobs[1], pinned_at=NOW))
    assert preempted_for(schedule(pinned, NOW)) == {"j-1": "j-2"}


def test_a_job_preempts_by_its_priority_without_a_wait() -> None:
    snapshot = snapshot_of(
        rules(patience_seconds=300.0), URGENT, node("n1", 1),
        running(1, {"n1": (0,)}, queue="urgent", priority=9), waiting(2, queue="urgent", gpus=1, priority=1, at=NOW),
    )  # fmt: skip
    assert preempted_for(schedule(snapshot, NOW)) == {"j-1": "j-2"}


def test_a_gang_needs_no_margin() -> None:
    """It takes 4 × 2,000 s of two nodes; each of those that run has 2 × 20,000 s left. A single job with the same cost
    is ahead by four fifths only."""
    running_jobs = [
        running(serial, {f"n{serial}": (0, 1)}, queue="short", predicted=runs_for(30_000.0), aged_from=0.0)
        for serial in (1, 2)
    ]
    machines = [node("n1", 2), node("n2", 2)]
    gang = waiting(3, queue="short", nodes=2, gpus=2, predicted=runs_for(2_000.0), aged_from=0.0, at=5_000.0)
    plan = schedule(snapshot_of(rules(), SHORT, *machines, *running_jobs, gang), NOW)
    assert preempted_for(plan) == {"j-1": "j-3", "j-2": "j-3"}
    single = waiting(3, queue="short", gpus=2, predicted=runs_for(4_000.0), aged_from=0.0, at=5_000.0)
    assert not schedule(snapshot_of(rules(), SHORT, *machines, *running_jobs, single), NOW).preemptions
    behind = waiting(3, queue="short", nodes=2, gpus=2, predicted=runs_for(11_000.0), aged_from=0.0, at=5_000.0)
    assert not schedule(snapshot_of(rules(), SHORT, *machines, *running_jobs, behind), NOW).preemptions


def gang_and_small(**small: Any) -> list[Any]:
    """A gang of two nodes that was passed by a small job, which runs since 5,000."""
    saving = {"aged_from": 5_000.0, "checkpointed_at": 9_000.0}
    return [
        Queue(name="default"), node("n1", 2), node("n2", 2),
        waiting(1, nodes=2, gpus=2, at=1_000.0, aged_from=1_000.0),
        running(2, {"n1": (0,)}, allocated_at=5_000.0, started_at=5_000.0, **{**saving, **small}),
    ]  # fmt: skip


def test_a_gang_that_has_waited_long_takes_back_nodes_from_jobs_that_passed_it() -> None:
    snapshot = snapshot_of(rules(gang_patience_seconds=8_000.0), *gang_and_small())
    plan = schedule(snapshot, NOW)
    assert preempted_for(plan) == {"j-2": "j-1"}
    assert plan.preemptions[0].rule is PreemptionRule.OVERRUN
    assert "j-2 was queued 1h6m40s after j-1 and passed it" in plan.preemptions[0].detail


@pytest.mark.parametrize(
    ("patience", "small"),
    [
        (9_500.0, {}),
        (None, {}),
        (8_000.0, {"checkpointed_at": None}),
        (8_000.0, {"aged_from": 500.0}),
        (8_000.0, {"preemptible": False}),
    ],
)
def test_a_gang_leaves_others_alone(patience: float | None, small: dict[str, Any]) -> None:
    """The patience of the gang is not over, or the other job writes no checkpoints, is older, or is not preemptible."""
    snapshot = snapshot_of(rules(gang_patience_seconds=patience), *gang_and_small(**small))
    plan = schedule(snapshot, NOW)
    assert not plan.preemptions
    if patience == 9_500.0:
        assert plan.wake_at == 10_500.0


def test_a_job_of_which_nothing_is_known_falls_behind_fresh_ones_when_it_outlives_what_was_supposed() -> None:
    ordering = replace(ClusterSnapshot().ordering, unknown_seconds=8_000.0, ageing=0.001, unknown_margin=0.0)
    put = replace(rules(), ordering=ordering)
    before, after = 15_900.0, 16_100.0
    snapshot = snapshot_of(
        put, SHORT, node("n1", 1), running(1, {"n1": (0,)}, queue="short"), waiting(2, queue="short", gpus=1)
    )
    plan = schedule(snapshot, before)
    assert not plan.preemptions, "it is nearly done, as far as one can tell"
    assert plan.wake_at == pytest.approx(16_000.0, abs=0.01)
    assert preempted_for(schedule(snapshot, after)) == {"j-1": "j-2"}


def test_several_jobs_may_share_what_one_victim_releases() -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 4),
        running(1, {"n1": (0, 1, 2, 3)}, queue="urgent", priority=9),
        waiting(2, queue="urgent", gpus=1, priority=1), waiting(3, queue="urgent", gpus=2, priority=2),
        waiting(4, queue="urgent", gpus=2, priority=3),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert preempted_for(plan) == {"j-1": "j-2"}
    assert promises(plan) == {"j-2": NOW, "j-3": NOW}


# ---------------------------------------------------------------- what holds always


@pytest.mark.parametrize(
    "victim",
    [
        {"preemptible": False},
        {"allocated_at": NOW - 599.0},
        {"state": JobState.STARTING, "started_at": None},
        {"state": JobState.STOPPING, "stopping_for": EndReason.STOPPED_BY_USER},
    ],
    ids=["not preemptible", "too young", "starting", "stopping"],
)
def test_jobs_that_are_never_preempted(victim: dict[str, Any]) -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 1),
        running(1, {"n1": (0,)}, queue="urgent", priority=9, **victim), waiting(2, queue="urgent", gpus=1, priority=1),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert not plan.preemptions
    assert plan.wake_at == (NOW + 1.0 if "allocated_at" in victim else None), "time alone will tell"


def test_no_job_is_preempted_where_that_is_not_enabled() -> None:
    snapshot = snapshot_of(
        rules(enabled=False), URGENT, LAB, node("n1", 1), running(1, {"n1": (0,)}, queue="urgent", priority=9),
        waiting(2, queue="urgent", gpus=1, priority=1), waiting(3, queue="lab", gpus=1),
    )  # fmt: skip
    assert not schedule(snapshot, NOW).preemptions


def test_no_job_is_preempted_in_vain() -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 2),
        running(1, {"n1": (0,)}, queue="urgent", priority=9), running(2, {"n1": (1,)}, queue="urgent", priority=1),
        waiting(3, queue="urgent", gpus=2, priority=3),
    )  # fmt: skip
    assert not schedule(snapshot, NOW).preemptions, "one GPU would not do"


def test_a_gang_gets_whole_nodes_from_the_fewest() -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 2), node("n2", 2), node("n3", 2),
        running(1, {"n1": (0, 1), "n2": (0, 1)}, queue="urgent", priority=9, checkpointed_at=NOW - 10),
        running(2, {"n3": (0,)}, queue="urgent", priority=9),
        waiting(3, queue="urgent", nodes=2, gpus=2, priority=1),
    )  # fmt: skip
    assert preempted_for(schedule(snapshot, NOW)) == {"j-1": "j-3"}


def test_a_share_is_made_room_for_by_one_share() -> None:
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 1),
        running(1, {"n1": (0,)}, gpu_milli=500, queue="urgent", priority=9),
        running(2, {"n1": (0,)}, gpu_milli=300, queue="urgent", priority=9),
        waiting(3, queue="urgent", gpu_milli=500, priority=1),
    )  # fmt: skip
    assert preempted_for(schedule(snapshot, NOW)) == {"j-2": "j-3"}, "0.2 are free, and 0.3 make 0.5"


def test_an_elastic_job_shrinks_before_any_job_is_preempted() -> None:
    elastic = Elastic(min_gpus=1, max_gpus=2)
    snapshot = snapshot_of(
        rules(), URGENT, node("n1", 3),
        running(1, {"n1": (0, 1)}, queue="urgent", priority=9, elastic=elastic, restart_unsaved=True),
        running(2, {"n1": (2,)}, queue="urgent", priority=9),
        waiting(3, queue="urgent", gpus=1, priority=1),
    )  # fmt: skip
    plan = schedule(snapshot, NOW)
    assert not plan.preemptions
    assert [resize.job_id for resize in plan.resizes] == ["j-1"]


# ---------------------------------------------------------------- while victims stop


def stopping(job: Job, for_job: str) -> Job:
    return advance(job, StopRequested(at=NOW, reason=EndReason.PREEMPTED, for_job=for_job)).job


def gone(job: Job, at: float) -> Job:
    return advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job


def test_while_victims_stop_no_more_are_chosen_and_what_comes_back_is_kept() -> None:
    first = running(1, {"n1": (0,)}, queue="urgent", priority=9, grace_seconds=30.0)
    second = running(2, {"n1": (1,)}, queue="urgent", priority=9, grace_seconds=30.0)
    third = running(3, {"n1": (2,)}, queue="urgent", priority=9)
    snapshot = snapshot_of(
        rules(), URGENT, REST, node("n1", 3), third,
        stopping(first, "j-5"), stopping(second, "j-5"),
        waiting(4, queue="rest", gpus=1, at=1.0), waiting(5, queue="urgent", gpus=2, priority=1, at=NOW - 1),
    )  # fmt: skip
    plan = schedule(snapshot, NOW + 1)
    assert not plan.preemptions
    assert not plan.starts
    assert promises(plan)["j-5"] == NOW + 31.0
    # One is gone: what it held is kept, although another job waits for longer.
    half = snapshot_of(*(change for change in snapshot.contents()), gone(stopping(first, "j-5"), NOW + 2))
    plan = schedule(half, NOW + 2)
    assert not plan.starts
    assert not plan.preemptions
    planned = plan.planned_start("j-5")
    assert planned is not None
    assert planned.held.gpus == ("n1/0",)
    # Both are gone.
    both = snapshot_of(*(change for change in half.contents()), gone(stopping(second, "j-5"), NOW + 3))
    assert started(schedule(both, NOW + 3)) == {"j-5": ["n1"]}


def test_victims_of_an_earlier_attempt_do_not_count_any_more() -> None:
    victim = gone(stopping(running(1, {"n1": (0,)}, queue="rest", created_at=50.0), "j-3"), NOW)
    again = waiting(3, queue="rest", gpus=1, at=NOW + 100)
    snapshot = snapshot_of(rules(), LAB, REST, node("n1", 1), victim, waiting(2, queue="rest", gpus=1, at=1.0), again)
    assert started(schedule(snapshot, NOW + 200)) == {"j-2": ["n1"]}


def test_job_that_no_longer_fits_gets_further_victims() -> None:
    first = running(1, {"n1": (0,)}, queue="urgent", priority=9)
    third = running(3, {"n2": (0,)}, queue="urgent", priority=9)
    waits = waiting(5, queue="urgent", gpus=1, priority=1, avoid_nodes=("n1",))
    snapshot = snapshot_of(rules(), URGENT, node("n1", 1), node("n2", 1), stopping(first, "j-5"), third, waits)
    assert preempted_for(schedule(snapshot, NOW)) == {"j-3": "j-5"}
