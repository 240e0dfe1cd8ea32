"""Elastic jobs that grow and shrink: one case per rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.core.jobs.lifecycle import ResizeRequested, advance
from corral.core.model import (
    WHOLE,
    Allocation,
    Blocking,
    Ceiling,
    Elastic,
    EndReason,
    Gpu,
    GpuHealth,
    Grant,
    Job,
    JobKind,
    JobState,
    NodeState,
    Queue,
)
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan, ResizeCause
from corral.core.scheduling.plan.plan_check import check_plan
from corral.core.snapshot.changes import PutQuota, PutRules, PutScore
from corral.core.snapshot.installation import Limits, ScalingRules
from tests.unit.core.builders import node, running, snapshot_of, started, waiting

RULES = ScalingRules(interval_seconds=600.0)
NOW = 5000.0
RULED = PutRules(limits=Limits(), score_time_constant=3600.0, scaling=RULES)
NODE = node("n1", gpus=8)


def elastic(serial: int, held: int, least: int = 2, most: int = 8, *, first: int = 0, **values: Any) -> Job:
    """On the GPUs of n1 from `first` on; works well, saved a moment ago."""
    base = {"elastic": Elastic(min_gpus=least, max_gpus=most), "utilization": 0.9, "checkpointed_at": NOW - 1}
    on = {"n1": tuple(range(first, first + held))}
    return replace(running(serial, on), **{**base, "grace_seconds": 30.0, **values})


def resizes(plan: Plan) -> dict[str, tuple[int, ResizeCause]]:
    return {resize.job_id: (len(resize.allocation.gpus), resize.cause) for resize in plan.resizes}


# ---------------------------------------------------------------- growing


def test_elastic_job_grows_into_all_idle_gpus_of_its_node() -> None:
    plan = schedule(snapshot_of(RULED, NODE, elastic(1, 2)), NOW)
    (resize,) = plan.resizes
    assert resizes(plan) == {"j-1": (8, ResizeCause.IDLE_GPUS)}
    assert resize.allocation.gpus == tuple(f"n1/{index}" for index in range(8))
    assert (resize.allocation.model, resize.ceiling, resize.for_jobs) == ("A10", None, ())


@pytest.mark.parametrize(
    ("words", "job", "others", "grown_to"),
    [
        ("its use is not known yet", {"utilization": None}, [], None),
        ("it does not use what it has", {"utilization": 0.79}, [], None),
        ("its use is just enough", {"utilization": 0.8}, [], 8),
        ("it has its most", {"most": 2}, [], None),
        ("it may have a few more", {"most": 3}, [], 3),
        ("it is only starting", {"state": JobState.STARTING, "started_at": None}, [], None),
        ("it is being stopped", {"state": JobState.STOPPING, "stopping_for": EndReason.PREEMPTED}, [], None),
        ("it never saved", {"checkpointed_at": None}, [], None),
        ("it never saved, and may start over", {"checkpointed_at": None, "restart_unsaved": True}, [], 8),
        ("that does not pay", {"checkpointed_at": None, "restart_unsaved": True, "most": 5}, [], None),
        ("it saved long ago, and would lose that", {"checkpointed_at": NOW - 4900}, [], 8),
        ("little is gained for much that is lost", {"checkpointed_at": NOW - 2600, "most": 3}, [], None),
        ("its restart takes hours", {"allocated_at": -20_000.0}, [], None),
        ("it was resized a moment ago", {"resized_at": NOW - 599}, [], None),
        ("it was resized long enough ago", {"resized_at": NOW - 600}, [], 8),
        ("its time is nearly over", {"time_limit_seconds": 5000.1}, [], None),
        ("it did not use six before", {"ceiling": Ceiling(gpus=6, until=NOW + 1)}, [], 5),
        ("that was long ago", {"ceiling": Ceiling(gpus=6, until=NOW)}, [], 8),
        ("it avoids some", {"avoid_gpus": ("n1/5", "n1/7")}, [], 6),
        ("others hold some", {}, [running(9, {"n1": (4, 5)})], 6),
        ("another job uses a part of one", {}, [running(9, {"n1": (7,)}, gpu_milli=100)], 7),
        ("a job waits for more than is there", {}, [waiting(9, gpus=7)], None),
        ("those who wait need no GPU", {}, [waiting(9, cpu_milli=10**9)], 8),
        ("those who wait can never run", {}, [waiting(9, gpus=80)], 8),
        ("those who wait want another model", {}, [waiting(9, gpus=1, models=("H100",))], 8),
        ("those who wait back off", {}, [waiting(9, gpus=7, not_before=NOW + 9)], 8),
        ("those who wait come after others", {}, [waiting(9, gpus=7, after=("j-1",))], 8),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_when_it_grows(words: str, job: dict[str, Any], others: list[Job], grown_to: int | None) -> None:
    plan = schedule(snapshot_of(RULED, NODE, elastic(1, 2, **job), *others), NOW)
    assert resizes(plan) == ({} if grown_to is None else {"j-1": (grown_to, ResizeCause.IDLE_GPUS)}), words


def test_time_alone_makes_it_due() -> None:
    plan = schedule(snapshot_of(RULED, NODE, elastic(1, 2, resized_at=NOW - 100)), NOW)
    assert (plan.resizes, plan.wake_at) == ((), NOW + 500)


@pytest.mark.parametrize(
    ("limits", "quota", "queue", "grown_to"),
    [
        (Limits(max_gpus_per_job=5), None, {}, 5),
        (Limits(max_gpus_per_user=4), None, {}, 4),
        (Limits(max_total_gpus=6), None, {}, 5),  # another job holds one
        (Limits(), Quota(gpu_milli=3 * WHOLE), {}, 3),
        (Limits(), Quota(gpu_milli=3500), {}, 3),
        (Limits(), None, {"max_gpus": 4}, 3),
        (Limits(), None, {"max_job_gpus": 6}, 6),
        (Limits(max_gpus_per_user=1), None, {}, None),  # lowered meanwhile: what it has stays
    ],
)
def test_no_limit_is_exceeded(limits: Limits, quota: Quota | None, queue: dict[str, Any], grown_to: int | None) -> None:
    things: list[Any] = [RULED, replace(RULED, limits=limits), Queue(name="default", policy="fcfs", **queue), NODE]
    if quota:
        things.append(PutQuota(user="eve", kind=JobKind.TRAINING, quota=quota))
    plan = schedule(snapshot_of(*things, elastic(1, 2), running(2, {"n1": (7,)}, user="bob")), NOW)
    assert resizes(plan) == ({} if grown_to is None else {"j-1": (grown_to, ResizeCause.IDLE_GPUS)})


def test_a_job_that_waits_for_a_shared_limit_comes_first() -> None:
    """Two GPUs are left of the queue's limit, and a job of three has a claim on them."""
    queue = Queue(name="default", policy="fcfs", max_gpus=6)
    things = (RULED, queue, NODE, elastic(1, 2), running(2, {"n1": (6, 7)}))
    assert resizes(schedule(snapshot_of(*things), NOW)) == {"j-1": (4, ResizeCause.IDLE_GPUS)}
    plan = schedule(snapshot_of(*things, waiting(3, gpus=3)), NOW)
    assert ([claim.job_id for claim in plan.claims], plan.resizes) == (["j-3"], ())


def test_job_of_the_user_with_less_usage_grows_first() -> None:
    scores = [PutScore(user="ann", model="A10", score=Score(value=3.0, at=NOW))]
    jobs = [elastic(1, 2, user="ann"), elastic(2, 2, first=2, user="bob")]
    assert resizes(schedule(snapshot_of(RULED, NODE, *scores, *jobs), NOW)) == {"j-2": (6, ResizeCause.IDLE_GPUS)}
    assert resizes(schedule(snapshot_of(RULED, NODE, *jobs), NOW)) == {"j-1": (6, ResizeCause.IDLE_GPUS)}


def test_only_gpus_of_its_own_pool_and_model_that_are_healthy() -> None:
    gpus = (
        *(Gpu(id=f"n1/{index}", index=index, model="A10") for index in range(3)),
        Gpu(id="n1/3", index=3, model="H100"),
        Gpu(id="n1/4", index=4, model="A10", pool="night"),
        Gpu(id="n1/5", index=5, model="A10", health=GpuHealth.SUSPECT),
        Gpu(id="n1/6", index=6, model="A10"),
    )
    (resize,) = schedule(snapshot_of(RULED, node("n1", gpus), elastic(1, 2)), NOW).resizes
    assert resize.allocation.gpus == ("n1/0", "n1/1", "n1/2", "n1/6")
    cordoned = replace(node("n1", gpus), state=NodeState.CORDONED)
    assert schedule(snapshot_of(RULED, cordoned, elastic(1, 2)), NOW).resizes == ()


def test_switched_off_nothing_is_resized() -> None:
    off = replace(RULED, scaling=replace(RULES, enabled=False))
    assert schedule(snapshot_of(off, NODE, elastic(1, 2)), NOW).resizes == ()
    assert schedule(snapshot_of(off, NODE, elastic(1, 8), waiting(2, gpus=4)), NOW).resizes == ()


# ---------------------------------------------------------------- starting


@pytest.mark.parametrize(
    ("restarts", "values", "gpus"),
    [
        (True, {}, 6),
        (False, {"checkpointed_at": NOW - 60}, 6),
        (False, {}, 2),  # it could not release them before it has saved
        (True, {"kind": JobKind.WORKBENCH}, 2),  # a task has no program yet
    ],
)
def test_elastic_job_starts_with_idle_gpus_that_it_can_release(
    restarts: bool, values: dict[str, Any], gpus: int
) -> None:
    job = waiting(1, gpus=2, elastic=Elastic(min_gpus=2, max_gpus=6), restart_unsaved=restarts, **values)
    (start,) = schedule(snapshot_of(RULED, NODE, job), NOW).starts
    assert start.allocation.gpus == tuple(f"n1/{index}" for index in range(gpus))


def test_elastic_job_starts_with_its_minimum_when_others_wait() -> None:
    job = waiting(1, gpus=2, elastic=Elastic(min_gpus=2, max_gpus=8), restart_unsaved=True)
    plan = schedule(snapshot_of(RULED, NODE, job, waiting(2, gpus=7)), NOW)
    assert {start.job_id: len(start.allocation.gpus) for start in plan.starts} == {"j-1": 2}
    plan = schedule(snapshot_of(RULED, NODE, job, waiting(2, gpus=3)), NOW)
    assert {start.job_id: len(start.allocation.gpus) for start in plan.starts} == {"j-1": 5, "j-2": 3}


# ---------------------------------------------------------------- for others


@pytest.mark.parametrize(
    ("words", "things", "expected"),
    [
        ("as few as needed", [elastic(1, 8), waiting(9, gpus=3)], {"j-1": 5}),
        ("with what is free", [elastic(1, 6), waiting(9, gpus=3)], {"j-1": 5}),
        ("all who wait at once", [elastic(1, 8), *(waiting(n, gpus=2) for n in (7, 8, 9))], {"j-1": 2}),
        ("as many as it can", [elastic(1, 8), *(waiting(n, gpus=2) for n in (6, 7, 8, 9))], {"j-1": 2}),
        ("never below its least", [elastic(1, 8), waiting(9, gpus=7)], {}),
        ("the minimum is kept", [elastic(1, 8, least=8), waiting(9, gpus=1)], {}),
        ("a share", [elastic(1, 8), waiting(9, gpu_milli=300)], {"j-1": 7}),
        ("two shares of one", [elastic(1, 8), *(waiting(n, gpu_milli=400) for n in (8, 9))], {"j-1": 7}),
        ("it has just started", [elastic(1, 8, state=JobState.STARTING, started_at=None), waiting(9, gpus=6)],
         {"j-1": 2}),
        ("it never saved", [elastic(1, 8, checkpointed_at=None), waiting(9, gpus=6)], {}),
        ("it never saved, and may start over",
         [elastic(1, 8, checkpointed_at=None, restart_unsaved=True), waiting(9, gpus=6)], {"j-1": 2}),
        ("one that never saved, and one that did",
         [elastic(1, 4, checkpointed_at=None), elastic(2, 4, first=4), waiting(9, gpus=2)], {"j-2": 2}),
        ("it was resized lately: all at once", [elastic(1, 8, resized_at=NOW - 9), waiting(9, gpus=1)], {"j-1": 2}),
        ("what is promised, too", [elastic(1, 4), running(2, {"n1": (4, 5, 6, 7)}), waiting(9, gpus=5)], {"j-1": 2}),
        ("no more than what is missing then",
         [elastic(1, 4), running(2, {"n1": (4, 5, 6, 7)}, time_limit_seconds=9e3), waiting(9, gpus=5)], {"j-1": 3}),
        ("who waits for it itself", [elastic(1, 4), running(2, {"n1": (4, 5, 6, 7)}), waiting(9, gpus=7)], {}),
        ("who comes next, too", [elastic(1, 8), waiting(8, gpus=1), waiting(9, gpus=6)], {"j-1": 2}),
        ("one who can do it alone", [elastic(1, 3, least=1), elastic(2, 5, first=3, least=1), waiting(9, gpus=4)],
         {"j-2": 1}),
        ("both, if one does not do", [elastic(1, 3, least=1), elastic(2, 5, first=3, least=1), waiting(9, gpus=6)],
         {"j-1": 1, "j-2": 1}),
        ("another elastic job waits", [elastic(1, 8), waiting(9, gpus=4, elastic=Elastic(min_gpus=4, max_gpus=8))],
         {"j-1": 4}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_elastic_job_shrinks_for_others(words: str, things: list[Job], expected: dict[str, int]) -> None:
    plan = schedule(snapshot_of(RULED, NODE, *things), NOW)
    assert resizes(plan) == {job: (size, ResizeCause.OTHERS) for job, size in expected.items()}, words
    assert not plan.starts, words


def test_a_gang_gets_its_nodes() -> None:
    two = running(2, {"n2": tuple(range(8))}, elastic=Elastic(min_gpus=1, max_gpus=8), checkpointed_at=NOW)
    snapshot = snapshot_of(RULED, NODE, node("n2", gpus=8), elastic(1, 8), two, waiting(9, gpus=4, nodes=2))
    plan = schedule(snapshot, NOW)
    assert resizes(plan) == {"j-1": (4, ResizeCause.OTHERS), "j-2": (4, ResizeCause.OTHERS)}
    assert all(resize.for_jobs == ("j-9",) for resize in plan.resizes)


def gang(serial: int, held: int, **values: Any) -> Job:
    """On both nodes, from the first GPU on; works well, saved a moment ago."""
    base = {"elastic": Elastic(min_gpus=2, max_gpus=8), "utilization": 0.9, "checkpointed_at": NOW - 1}
    on = {"n1": tuple(range(held)), "n2": tuple(range(held))}
    return replace(running(serial, on, kind=JobKind.DISTRIBUTED), **{**base, **values})


@pytest.mark.parametrize(
    ("words", "things", "sizes"),
    [
        ("it grows on both nodes", [gang(1, 2)], [8, 8]),
        ("by as many on each", [gang(1, 2), running(2, {"n2": (5, 6, 7)})], [5, 5]),
        ("within its bounds", [gang(1, 2, elastic=Elastic(min_gpus=2, max_gpus=3))], [3, 3]),
        ("not on one alone", [gang(1, 2), running(2, {"n2": tuple(range(2, 8))})], None),
        ("it shrinks on both for a job on one", [gang(1, 8), waiting(9, gpus=3)], [5, 5]),
        ("for two jobs on one node", [gang(1, 8), waiting(8, gpus=3), waiting(9, gpus=3)], [2, 2]),
        ("for another gang", [gang(1, 8), waiting(9, gpus=4, nodes=2)], [4, 4]),
        ("unused GPUs of both", [gang(1, 8, utilization=0.1)], [4, 4]),
        ("it never saved", [gang(1, 8, checkpointed_at=None), waiting(9, gpus=1)], None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_gang_changes_on_all_its_nodes(words: str, things: list[Job], sizes: list[int] | None) -> None:
    plan = schedule(snapshot_of(RULED, NODE, node("n2", gpus=8), *things), NOW)
    found = [[len(grant.gpus) for grant in resize.allocation.grants] for resize in plan.resizes]
    assert found == ([] if sizes is None else [sizes]), words
    assert check_plan(snapshot_of(RULED, NODE, node("n2", gpus=8), *things), plan) == []


def test_a_gang_counts_with_all_its_nodes_for_a_limit() -> None:
    """Three GPUs are missing under the limit: two on each of two nodes."""
    limits = replace(RULED, limits=Limits(max_total_gpus=16))
    things = (limits, NODE, node("n2", gpus=8), node("n3", gpus=4), gang(1, 8), waiting(9, gpus=3))
    assert resizes(schedule(snapshot_of(*things), NOW)) == {"j-1": (12, ResizeCause.OTHERS)}


def test_in_a_strict_line_no_job_passes() -> None:
    """The first one cannot start whatever is given back, and nothing is given back for those behind it."""
    queue = Queue(name="default", policy="fcfs", blocking=Blocking.STRICT)
    things = (RULED, queue, NODE, elastic(1, 8), waiting(8, gpus=7), waiting(9, gpus=2))
    assert schedule(snapshot_of(*things), NOW).resizes == ()


def test_gpus_that_are_being_released_are_not_requested_twice() -> None:
    shrinking = advance(elastic(1, 8), ResizeRequested(at=NOW, allocation=_on(0, 1, 2, 3, 4))).job
    assert schedule(snapshot_of(RULED, NODE, shrinking, waiting(9, gpus=3)), NOW).resizes == ()
    # One more came: it goes to a smaller size, for the same restart.
    plan = schedule(snapshot_of(RULED, NODE, shrinking, waiting(8, gpus=3), waiting(9, gpus=2)), NOW)
    assert resizes(plan) == {"j-1": (3, ResizeCause.OTHERS)}
    after = advance(shrinking, ResizeRequested(at=NOW, allocation=plan.resizes[0].allocation))
    assert after.instructions == ()
    assert after.job.allocation == shrinking.allocation


def test_growing_job_turns_to_shrinking() -> None:
    growing = advance(elastic(1, 2), ResizeRequested(at=NOW, allocation=_on(*range(8)))).job
    assert (growing.request.gpus, len(growing.allocation.gpus if growing.allocation else ())) == (8, 8)
    plan = schedule(snapshot_of(RULED, NODE, growing, waiting(9, gpus=5)), NOW)
    assert resizes(plan) == {"j-1": (3, ResizeCause.OTHERS)}


@pytest.mark.parametrize(
    ("limits", "quota", "queue"),
    [
        (Limits(max_total_gpus=8), None, {}),
        (Limits(max_gpus_per_user=8), None, {}),
        (Limits(), Quota(gpu_milli=8 * WHOLE), {}),
        (Limits(), None, {"max_gpus": 8}),
    ],
    ids=["total", "user", "quota", "queue"],
)
def test_elastic_job_gives_back_gpus_for_a_limit(limits: Limits, quota: Quota | None, queue: dict[str, Any]) -> None:
    """There are GPUs enough on another node; the limit is what its user's other job waits for."""
    things: list[Any] = [
        replace(RULED, limits=limits),
        Queue(name="default", policy="fcfs", **queue),
        NODE,
        node("n2", gpus=4),
    ]
    if quota:
        things.append(PutQuota(user="eve", kind=JobKind.TRAINING, quota=quota))
    plan = schedule(snapshot_of(*things, elastic(1, 7), waiting(9, user="eve", gpus=3)), NOW)
    assert resizes(plan) == {"j-1": (5, ResizeCause.OTHERS)}
    assert plan.resizes[0].for_jobs == ("j-9",)


def test_suspect_gpus_go_first_and_help_no_job() -> None:
    gpus = tuple(
        Gpu(id=f"n1/{index}", index=index, model="A10", health=GpuHealth.SUSPECT if index == 0 else GpuHealth.HEALTHY)
        for index in range(8)
    )
    (resize,) = schedule(snapshot_of(RULED, node("n1", gpus), elastic(1, 8), waiting(9, gpus=2)), NOW).resizes
    assert resize.allocation.gpus == tuple(f"n1/{index}" for index in (1, 2, 3, 4, 5))


def test_others_really_start_on_what_came_back() -> None:
    snapshot = snapshot_of(RULED, NODE, elastic(1, 8), *(waiting(n, gpus=2) for n in (7, 8, 9)))
    (resize,) = schedule(snapshot, NOW).resizes
    smaller = elastic(1, 2)
    assert smaller.allocation == resize.allocation
    plan = schedule(snapshot_of(RULED, NODE, smaller, *(waiting(n, gpus=2) for n in (7, 8, 9))), NOW)
    assert started(plan) == {"j-7": ["n1"], "j-8": ["n1"], "j-9": ["n1"]}


# ---------------------------------------------------------------- unused


def test_half_of_what_it_does_not_use_goes_back() -> None:
    (resize,) = schedule(snapshot_of(RULED, NODE, elastic(1, 8, utilization=0.29)), NOW).resizes
    assert (len(resize.allocation.gpus), resize.cause) == (4, ResizeCause.UNUSED)
    assert resize.ceiling == Ceiling(gpus=8, until=NOW + 6 * 600.0, times=1)
    known = Ceiling(gpus=8, until=0.0, times=1)
    (resize,) = schedule(snapshot_of(RULED, NODE, elastic(1, 5, utilization=0.0, ceiling=known)), NOW).resizes
    assert (len(resize.allocation.gpus), resize.ceiling) == (2, Ceiling(gpus=5, until=NOW + 12 * 600.0, times=2))


@pytest.mark.parametrize(
    "values", [{"utilization": 0.3}, {"held": 2}, {"resized_at": NOW - 10}, {"checkpointed_at": None}]
)
def test_when_it_keeps_what_it_has(values: dict[str, Any]) -> None:
    values = {"held": 8, "utilization": 0.1, **values}
    assert schedule(snapshot_of(RULED, NODE, elastic(1, values.pop("held"), **values)), NOW).resizes == ()


def _on(*indexes: int) -> Allocation:
    grant = Grant(node="n1", gpus=tuple(f"n1/{index}" for index in indexes))
    return Allocation(grants=(grant,), model="A10")
