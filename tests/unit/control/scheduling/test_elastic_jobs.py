"""Elastic jobs in the live system: what is written when one is resized, and who may ask for what."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp
from typing import Any

import pytest

from corral.control.errors import Invalid, NotFound, OverLimit, WrongState
from corral.control.jobs import job_clone, jobs
from corral.control.launch.orders import filled, launch_order
from corral.control.live.journal import replay
from corral.control.monitoring import gpu_health
from corral.control.ports import AttemptPhase, Store
from corral.control.records import JobSpec
from corral.control.scheduling import elastic_jobs
from corral.control.system.policies import Policies, ScalingPolicy
from corral.core.jobs.lifecycle import Launch, Stop
from corral.core.model import WHOLE, Elastic, EndReason, GpuHealth, Job, JobKind, JobState, NodeState, Request
from corral.core.monitoring.health.model import Condition
from corral.core.people.quota import Quota
from corral.core.people.scores import score_at
from corral.core.snapshot.changes import PutQuota
from corral.core.snapshot.installation import Limits, ScalingRules
from corral.core.snapshot.journal import digest_of
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft
from tests.unit.core.builders import node

HOUR = 3600.0
NODE = node("n1", gpus=8)
ELASTIC = Elastic(min_gpus=2, max_gpus=8)
POLICIES = Policies(scaling=ScalingPolicy(max_gpus=8, rules=ScalingRules(interval_seconds=600.0)))


@pytest.fixture
@once
def desk(store: Store) -> Desk:
    return Desk(store, POLICIES, nodes=[NODE])


def stretchy(name: str = "stretchy", least: int = 2, most: int = 8, **values: Any) -> jobs.JobDraft:
    """An elastic job that may start over, so that it starts with the idle GPUs."""
    return draft(name, **{"min_gpus": least, "max_gpus": most, "restart_unsaved": True, **values})


def up(desk: Desk, job: Job) -> Job:
    desk.hear(job, AttemptPhase.RUNNING)
    return desk.job(job.id)


def used(desk: Desk, job: Job, use: float, saved: bool = True) -> None:
    desk.do(elastic_jobs.note_use, {job.attempt_id: use})
    if saved:
        current = desk.job(job.id)
        desk.do(lambda work: work.jobs.edit(current, replace(current, checkpointed_at=work.now)))


def ended(desk: Desk, job: Job) -> Job:
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143)
    return desk.job(job.id)


def gpus(job: Job) -> list[int]:
    return [int(gpu.rpartition("/")[2]) for gpu in job.allocation.gpus] if job.allocation else []


def test_a_whole_life(desk: Desk) -> None:
    """The job starts with the free GPUs, shrinks, and grows again; accounts, attempts and journal follow every step."""
    (busy,) = desk.started(draft("busy", gpus=4), caller=BOB)
    (job,) = desk.started(stretchy())
    assert (gpus(job), job.request.gpus, job.attempt) == ([4, 5, 6, 7], 4, 1)

    # A job waits: the elastic one is warned, and keeps everything until it has saved.
    desk.now += HOUR
    (other,) = desk.submit(draft("other", gpus=2), caller=BOB)
    assert desk.cycle() == []
    job = desk.job(job.id)
    assert (job.state, job.stopping_for, len(gpus(job))) == (JobState.STOPPING, EndReason.RESIZED, 4)
    assert desk.instructions == [Stop(attempt_id=f"{job.id}.1", grace_seconds=30.0)]
    assert desk.cycle() == [], "and it is asked once"
    assert desk.instructions == []
    desk.now += 10
    job = ended(desk, job)
    assert desk.instructions == [Launch(attempt_id=f"{job.id}.2")]
    assert desk.forgotten == [f"{job.id}.1"]
    assert (job.state, gpus(job), job.request.gpus, job.resized_at) == (JobState.STARTING, [4, 5], 2, desk.now)
    assert desk.cycle() == [other.id]
    job = up(desk, job)

    # The others are gone, it uses what it has, and its last resize is long ago: it grows.
    up(desk, desk.job(other.id))
    for done in (busy, other):
        desk.hear(desk.job(done.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.now += HOUR
    used(desk, job, 0.97)
    desk.cycle()
    job = desk.job(job.id)
    assert (job.state, len(gpus(job)), job.request.gpus) == (JobState.STOPPING, 8, 8)
    assert len(job.next_allocation.gpus if job.next_allocation else ()) == 8
    desk.now += 10
    job = up(desk, ended(desk, job))
    assert (job.attempt, len(gpus(job)), job.utilization) == (3, 8, None)
    assert digest_of(desk.loaded().snapshot.contents()) == digest_of(desk.state.snapshot.contents())
    desk.now += HOUR
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    job = desk.job(job.id)
    assert (job.state, job.request.gpus, job.ran_seconds) == (JobState.COMPLETED, 2, 0.0)

    with desk.store.read() as tx:
        attempts, lines = tx.attempts.of_job(job.id), tx.usage.of_job(job.id)
        cycles = tx.cycles.since_base()
    assert [(len(item.allocation.gpus), item.end_reason) for item in attempts] == [
        (4, EndReason.RESIZED), (2, EndReason.RESIZED), (8, EndReason.EXIT_CODE),
    ]  # fmt: skip
    assert [(one.ended_at, one.planned_at) for one in lines[:-1]] == [
        (one.planned_at, before.planned_at) for before, one in pairwise(lines)
    ], "one ends where the next begins"
    assert [line.outcome for line in lines] == [JobState.STARTING, JobState.STARTING, JobState.COMPLETED]
    assert [line.wait_seconds for line in lines] == [0.0, 0.0, 0.0]
    assert _score_by_hand(desk, lines) == pytest.approx(score_at(_score(desk), desk.now, 6 * HOUR))
    assert _score(desk).usage == 0.0
    assert all(item.decided == item.recorded for item in replay(cycles))
    assert [action for action in desk.actions(job.id) if "resiz" in action] == [
        "job.resizing", "job.resized", "job.resizing", "job.resized",
    ]  # fmt: skip
    receipts = [event.detail for event in desk.events() if event.action == "job.resizing"]
    assert [(item["cause"], item["from_gpus"], item["to_gpus"], item["for"]) for item in receipts] == [
        ("others", 4, 2, [other.id]), ("idle-gpus", 2, 8, []),
    ]  # fmt: skip


def _score(desk: Desk) -> Any:
    return desk.state.snapshot.scores["ann", "A10"]


def _score_by_hand(desk: Desk, lines: Any) -> float:
    def part(since: float, until: float) -> float:
        return exp(-(desk.now - until) / (6 * HOUR)) - exp(-(desk.now - since) / (6 * HOUR))

    return float(sum(line.gpu_milli / WHOLE * part(line.planned_at, line.ended_at) for line in lines))


def test_the_time_limit_is_not_given_anew(desk: Desk) -> None:
    (job,) = desk.started(stretchy(time_limit_seconds=HOUR))
    promised = job.expected_end
    desk.now += 1000
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=2)
    desk.now += 20
    job = up(desk, ended(desk, job))
    assert (job.ran_seconds, job.time_left_seconds, job.expected_end) == (1020.0, 2580.0, promised)
    order = launch_order(job, JobSpec(command=("x",)), {"n1": NODE}, {})
    assert order.time_limit_seconds == 2580.0
    desk.now += 2570
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=4)
    desk.now += 20
    job = ended(desk, job)
    assert (job.state, job.end_reason, job.request.gpus) == (JobState.FAILED, EndReason.TIMED_OUT, 2)


def test_a_quota_counts_the_least_and_what_is_beyond_comes_back_for_it(desk: Desk) -> None:
    desk.state.apply([PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=6 * WHOLE))])
    (job,) = desk.started(stretchy())
    assert len(gpus(job)) == 6
    (more,) = desk.submit(draft("more", gpus=4))
    desk.cycle()
    ended(desk, job)
    assert desk.cycle() == [more.id]


def test_queued_elastic_job_asks_for_its_minimum_again(desk: Desk) -> None:
    (job,) = desk.started(stretchy())
    assert job.request.gpus == 8
    desk.do(jobs.requeue, ANN, job.id)
    job = ended(desk, job)
    assert (job.state, job.request.gpus, job.elastic) == (JobState.QUEUED, 2, ELASTIC)
    desk.cycle()
    assert desk.job(job.id).request.gpus == 8
    desk.do(jobs.stop, ANN, job.id)
    assert ended(desk, job).request.gpus == 2


def test_a_resize_by_hand(desk: Desk) -> None:
    # With time limits, GPUs are held for the planned start of a waiting job.
    (busy,) = desk.started(draft("busy", gpus=3, time_limit_seconds=HOUR), caller=BOB)
    (job,) = desk.started(stretchy(least=1, time_limit_seconds=HOUR))
    assert gpus(job) == [3, 4, 5, 6, 7]
    assert desk.do(elastic_jobs.resize, ANN, job.id, gpus=5) == desk.job(job.id), "it has that already"
    desk.do(elastic_jobs.resize, ROOT, job.id, gpus=2)
    with pytest.raises(WrongState, match="only a running one"):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=3)
    job = up(desk, ended(desk, job))
    assert gpus(job) == [3, 4]
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=4)
    job = up(desk, ended(desk, job))
    assert gpus(job) == [3, 4, 5, 6]
    with pytest.raises(WrongState, match="1 GPU is idle"):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=6)
    # GPUs that are reserved for a waiting job are not idle.
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=2)
    job = up(desk, ended(desk, job))
    desk.submit(draft("large", gpus=8), caller=BOB)
    desk.cycle()
    with pytest.raises(WrongState, match="0 GPUs are idle"):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=3)
    assert busy.id in desk.state.snapshot.jobs


@pytest.mark.parametrize(("asked", "words"), [(1, "2 to 8"), (9, "2 to 8")])
def test_a_resize_stays_within_its_bounds(desk: Desk, asked: int, words: str) -> None:
    (job,) = desk.started(stretchy())
    with pytest.raises(Invalid, match=words):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=asked)
    with pytest.raises(NotFound):
        desk.do(elastic_jobs.resize, BOB, job.id, gpus=4)


def test_a_resize_that_cannot_be(store: Store) -> None:
    limits = Limits(max_gpus_per_user=6)
    desk = Desk(store, replace(POLICIES, limits=limits), nodes=[NODE])
    (rigid,) = desk.started(draft("rigid", gpus=1))
    with pytest.raises(WrongState, match="not elastic"):
        desk.do(elastic_jobs.resize, ANN, rigid.id, gpus=2)
    (job,) = desk.started(stretchy())
    with pytest.raises(OverLimit, match="leave 0 GPUs"):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=8)
    desk.observe(replace(NODE, state=NodeState.DRAINING), at=0.0)
    with pytest.raises(WrongState, match="takes nothing new"):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=3)
    desk.policies = desk.state.policies = replace(
        POLICIES, scaling=replace(POLICIES.scaling, rules=ScalingRules(enabled=False))
    )
    with pytest.raises(WrongState, match="enabled is false"):
        desk.do(elastic_jobs.resize, ANN, job.id, gpus=3)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"least": 0}, Invalid, "at least 1"),
        ({"most": 9}, OverLimit, "at most 8"),
        ({"least": 5, "most": 4}, Invalid, "more than"),
        ({"least": 9, "most": None}, Invalid, "more than"),
        ({"kind": JobKind.WORKBENCH}, Invalid, "a workbench cannot be elastic"),
    ],
)
def test_sizes_that_cannot_be_asked_for(desk: Desk, values: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        desk.submit(stretchy(**values))


def test_elastic_request_accepts_a_single_number(desk: Desk) -> None:
    (low, high) = desk.submit(draft("low-only", min_gpus=3), draft("high-only", max_gpus=3))
    assert (low.elastic, low.request.gpus) == (Elastic(min_gpus=3, max_gpus=8), 3)
    assert (high.elastic, high.request.gpus) == (Elastic(min_gpus=1, max_gpus=3), 1)


def test_switched_off_there_are_none(store: Store) -> None:
    off = replace(POLICIES, scaling=replace(POLICIES.scaling, rules=ScalingRules(enabled=False)))
    with pytest.raises(Invalid, match="enabled is false"):
        Desk(store, off, nodes=[NODE]).submit(stretchy())


def test_a_clone_is_as_elastic(desk: Desk) -> None:
    (job,) = desk.started(stretchy())
    same = desk.do(job_clone.clone, ANN, job.id, _changes()).job
    assert (same.elastic, same.request.gpus, same.restart_unsaved) == (job.elastic, 2, True)
    other = desk.do(job_clone.clone, ANN, job.id, _changes(max_gpus=4)).job
    assert other.elastic == replace(ELASTIC, max_gpus=4)
    rigid = desk.do(job_clone.clone, ANN, job.id, _changes(request=Request(gpus=3))).job
    assert (rigid.elastic, rigid.request.gpus) == (None, 3)


def test_a_gang_keeps_its_nodes_and_changes_on_each_of_them(store: Store) -> None:
    desk = Desk(store, POLICIES, nodes=[NODE, node("n2", gpus=8)])
    (gang,) = desk.started(stretchy("gang", least=1, request=Request(nodes=2)))
    assert gang.allocation is not None
    assert (gang.kind, gang.request.gpus, [len(one.gpus) for one in gang.allocation.grants]) == (
        JobKind.DISTRIBUTED, 8, [8, 8],
    )  # fmt: skip
    desk.now += HOUR
    (other,) = desk.submit(draft("other", gpus=3), caller=BOB)
    desk.cycle()
    gang = ended(desk, desk.job(gang.id))
    assert gang.allocation is not None
    assert (gang.request.gpus, [len(one.gpus) for one in gang.allocation.grants]) == (5, [5, 5])
    assert desk.cycle() == [other.id]
    gang = up(desk, gang)
    desk.do(elastic_jobs.resize, ANN, gang.id, gpus=2)
    gang = up(desk, ended(desk, gang))
    with pytest.raises(WrongState, match="3 GPUs are idle and wanted by no waiting job: asked for 5 more"):
        desk.do(elastic_jobs.resize, ANN, gang.id, gpus=7)
    desk.do(elastic_jobs.resize, ANN, gang.id, gpus=4)
    gang = up(desk, ended(desk, gang))
    assert gang.allocation is not None
    assert [len(one.gpus) for one in gang.allocation.grants] == [4, 4]
    order = launch_order(gang, JobSpec(command=("x", "{gpu_count}", "{gpu_list}")), desk.state.snapshot.nodes, {})
    assert order.command == ("x", "4", "{gpu_list}")


def _changes(**values: Any) -> jobs.JobChange:
    given = frozenset("gpus" if name == "request" else name for name in values)
    return jobs.JobChange(given=given, draft=jobs.JobDraft(spec=JobSpec(command=("x",)), **values))


def test_a_gpu_that_fails_while_it_is_resized_is_not_used_again(desk: Desk) -> None:
    (job,) = desk.started(stretchy())
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=4)
    before = Condition(gpu_id="n1/1")
    failed = replace(before, health=GpuHealth.FAILED)
    desk.do(gpu_health.apply, [gpu_health.HealthChange(before=before, after=failed)])
    job = desk.job(job.id)
    assert (job.stopping_for, job.next_allocation) == (EndReason.GPU_FAILED, None)
    job = ended(desk, job)
    assert (job.state, job.avoid_gpus, job.request.gpus) == (JobState.QUEUED, ("n1/1",), 2)


def test_a_node_that_is_lost_while_it_is_resized(desk: Desk) -> None:
    (job,) = desk.started(stretchy())
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=4)
    desk.observe(at=0.0)
    assert desk.job(job.id).stopping_for is EndReason.NODE_LOST


def test_a_stop_outranks_a_resize(desk: Desk) -> None:
    (job,) = desk.started(stretchy())
    desk.do(elastic_jobs.resize, ANN, job.id, gpus=4)
    desk.do(jobs.stop, ANN, job.id)
    assert desk.instructions == [], "it ends already"
    job = ended(desk, job)
    assert (job.state, job.end_reason) == (JobState.STOPPED, EndReason.STOPPED_BY_USER)


def test_elastic_job_that_was_never_launched_starts_with_its_next_size(desk: Desk) -> None:
    """The server died between the plan and the launch, and before the launch was made good others came."""
    (job,) = desk.submit(stretchy())
    desk.cycle()
    desk.submit(draft("other", gpus=6), caller=BOB)
    desk.cycle()
    assert desk.job(job.id).stopping_for is EndReason.RESIZED
    desk.now += 60
    desk.observe(NODE, at=desk.now)
    job = desk.job(job.id)
    assert (job.state, job.attempt, len(gpus(job))) == (JobState.STARTING, 2, 2)


def test_old_and_foreign_measurements_change_nothing(desk: Desk) -> None:
    (job,) = desk.started(stretchy())
    (rigid,) = desk.started(draft("rigid", gpus=0))
    desk.do(elastic_jobs.note_use, {f"{job.id}.7": 0.5, rigid.attempt_id: 0.5, "j-99.1": 0.5})
    assert desk.job(job.id).utilization is None
    desk.do(elastic_jobs.note_use, {job.attempt_id: 0.514})
    version = desk.job(job.id).version
    desk.do(elastic_jobs.note_use, {job.attempt_id: 0.53})
    assert (desk.job(job.id).utilization, desk.job(job.id).version) == (0.51, version)
    for use in (0.79, 0.8):
        desk.do(elastic_jobs.note_use, {job.attempt_id: use})
    assert desk.job(job.id).utilization == 0.8, "a threshold is crossed"


def test_the_command_is_filled_at_each_launch() -> None:
    assert filled(["train", "--gpus={gpu_list}", "{gpu_count}", "{other}"], [3, 5]) == (
        "train", "--gpus=3,5", "2", "{other}",
    )  # fmt: skip
