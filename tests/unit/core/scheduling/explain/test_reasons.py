"""Why a job waits: always an answer, its numbers counted again by hand, and gone with its cause."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from corral.core.jobs.lifecycle import ResizeRequested, advance
from corral.core.model import WHOLE, Blocking, Elastic, GpuHealth, Job, JobKind, JobState, NodeState, Queue, Request
from corral.core.people.quota import Quota, quota_kinds
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import NAMED, Explanation, explain, line_order
from corral.core.scheduling.forecast.estimates import forecast
from corral.core.scheduling.limits.hold_rules import Reason
from corral.core.scheduling.plan.plan import Plan
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import (
    Change,
    DropJob,
    PutJob,
    PutNode,
    PutQueue,
    PutQuota,
    PutReservation,
    PutRules,
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from corral.core.snapshot.waiting_lines import line_of
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR


@DEAR
@given(histories())
def test_every_waiting_job_has_an_answer_with_true_numbers(history: History) -> None:
    simulation = history.simulation()
    for step in simulation:
        snapshot = simulation.snapshot
        starting = {start.job_id for start in step.plan.starts}
        for job in list(snapshot.jobs.values()):
            explained = explain(snapshot, step.plan, job, step.at)
            if job.state is not JobState.QUEUED or job.id in starting:
                assert not explained.reasons
                continue
            assert explained.reasons or explained.ahead, f"{job.id} waits without a reason"
            assert explained.summary
            order = [other.id for other in line_order(snapshot, line_of(job), step.at) if other.id not in starting]
            assert [*explained.ahead] == order[: min(order.index(job.id), NAMED)]
            assert (explained.position, explained.ahead_count) == (order.index(job.id) + 1, order.index(job.id))
            for reason in explained.reasons:
                _check_numbers(Recount(snapshot, step.plan), job, reason, step.plan)


class Recount:
    """The held and free resources after a plan's starts, computed from allocations alone."""

    def __init__(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        self.snapshot = snapshot
        starts = [(snapshot.jobs[start.job_id], start.allocation) for start in plan.starts]
        self.holding = [(job, job.allocation) for job in snapshot.jobs.values() if job.allocation] + starts
        self.left = {gpu.id: WHOLE for machine in snapshot.nodes.values() for gpu in machine.gpus}
        for _, allocation in self.holding:
            for grant in allocation.grants:
                for gpu in grant.gpus:
                    self.left[gpu] -= grant.gpu_milli

    def held(self, **by: str) -> float:
        """GPUs held by jobs with these values."""
        return sum(
            allocation.total_gpu_milli / WHOLE
            for job, allocation in self.holding
            if all(getattr(job, name) == value for name, value in by.items())
        )

    def held_of_kind(self, user: str, kind: JobKind) -> float:
        """GPUs held by the user's jobs that the quota for this kind counts."""
        mine = [allocation for job, allocation in self.holding if job.user == user and kind in quota_kinds(job)]
        return sum(allocation.total_gpu_milli for allocation in mine) / WHOLE

    def whole_free(self, pool: str, request: Request) -> list[int]:
        """Whole free GPUs that count, on each ready node and of each model apart."""
        counts: dict[tuple[str, str], int] = {}
        for machine in self.snapshot.nodes.values():
            for gpu in machine.gpus if machine.state is NodeState.READY else ():
                wanted = gpu.pool == pool and (not request.models or gpu.model in request.models)
                if gpu.health is GpuHealth.HEALTHY and wanted:
                    key = (machine.id, gpu.model)
                    counts[key] = counts.get(key, 0) + (self.left[gpu.id] == WHOLE)
        return list(counts.values())


def _check_numbers(recount: Recount, job: Job, reason: Reason, plan: Plan) -> None:
    snapshot, numbers, request = recount.snapshot, reason.numbers, job.request
    match reason.rule:
        case "gpus-per-user":
            assert numbers["held"] == pytest.approx(recount.held(user=job.user))
        case "total-gpus":
            assert numbers["held"] == pytest.approx(recount.held())
        case "queue-gpus":
            assert numbers["held"] == pytest.approx(recount.held(queue=job.queue))
            assert numbers["limit"] == snapshot.queues[job.queue].max_gpus
        case "quota" if numbers["resource"] == "gpus":
            # A job of a preset counts in the quota of trainings or gangs, too.
            (kind,) = [kind for kind in quota_kinds(job) if f"for {kind} gpus" in reason.detail]
            assert numbers["held"] == pytest.approx(recount.held_of_kind(job.user, kind))
        case "resources" if request.wants_gpu:
            counts = recount.whole_free(snapshot.queues[job.queue].pool, request)
            assert numbers["free_gpus"] == sum(counts)
            assert numbers["most_free_on_a_node"] == max(counts, default=0)
            assert numbers["asked_nodes"] == request.nodes
            assert set(reason.jobs) <= {holder.id for holder, _ in recount.holding}
        case "kept":
            others = [planned for planned in plan.planned if planned.job_id != job.id]
            assert numbers["kept_gpus"] == pytest.approx(sum(p.held.total_gpu_milli for p in others) / WHOLE)
            assert set(reason.jobs) <= {planned.job_id for planned in others}
        case "order":
            assert snapshot.queues[job.queue].blocking is Blocking.STRICT
    if {"asked", "held", "limit"} <= numbers.keys():
        assert float(numbers["held"]) + float(numbers["asked"]) > float(numbers["limit"])


def why(snapshot: ClusterSnapshot, job_id: str, now: float = 10.0) -> Explanation:
    return explain(snapshot, schedule(snapshot, now), snapshot.jobs[job_id], now)


def rules_of(explained: Explanation) -> list[str]:
    return [reason.rule for reason in explained.reasons]


FREE = node("n1", gpus=2)
ONE_GPU_EACH = Limits(max_gpus_per_user=1)
CAUSES: dict[str, tuple[str, list[object], Change]] = {
    "gpus-per-user": (
        "gpus-per-user",
        [FREE, PutRules(limits=ONE_GPU_EACH, score_time_constant=60.0), waiting(1, gpus=2)],
        PutRules(limits=Limits(), score_time_constant=60.0),
    ),
    "gpus-per-job": (
        "gpus-per-job",
        [FREE, PutRules(limits=Limits(max_gpus_per_job=1), score_time_constant=60.0), waiting(1, gpus=2)],
        PutRules(limits=Limits(), score_time_constant=60.0),
    ),
    "total-gpus": (
        "total-gpus",
        [
            FREE,
            PutRules(limits=Limits(max_total_gpus=1), score_time_constant=60.0),
            running(2, {"n1": (0,)}),
            waiting(1, gpus=1),
        ],
        DropJob(id="j-2"),
    ),
    "queue-gpus": (
        "queue-gpus",
        [FREE, Queue(name="default", max_gpus=1), waiting(1, gpus=2)],
        PutQueue(queue=Queue(name="default", max_gpus=2)),
    ),
    "quota": (
        "quota",
        [FREE, PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=500)), waiting(1, gpus=1)],
        PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=1000)),
    ),
    "back-off": (
        "back-off",
        [FREE, waiting(1, gpus=1, not_before=20.0, faults=1, message="node lost")],
        PutJob(job=waiting(1, gpus=1)),
    ),
    "given-back": (
        "given-back",
        [FREE, waiting(1, gpus=1, not_before=20.0, given_back=2, faults=1, message="Slurm did not begin it")],
        PutJob(job=waiting(1, gpus=1, given_back=2)),
    ),
    "queue-missing": (
        "queue-missing",
        [FREE, Queue(name="default"), waiting(1, gpus=1, queue="gone")],
        PutQueue(queue=Queue(name="gone")),
    ),
    "impossible": ("impossible", [FREE, waiting(1, gpus=3)], PutNode(node=node("n2", gpus=3))),
    "cordoned": ("impossible", [replace(FREE, state=NodeState.CORDONED), waiting(1, gpus=1)], PutNode(node=FREE)),
    "resources": ("resources", [FREE, running(2, {"n1": (0,)}), waiting(1, gpus=2)], DropJob(id="j-2")),
}


@pytest.mark.parametrize("case", CAUSES)
def test_a_reason_goes_with_its_cause(case: str) -> None:
    rule, things, remedy = CAUSES[case]
    snapshot = snapshot_of(*things)  # type: ignore[arg-type]
    assert rules_of(why(snapshot, "j-1")) == [rule]
    snapshot.apply([remedy])
    assert (explained := why(snapshot, "j-1")).summary == "it starts now"
    assert not explained.reasons


def test_room_that_is_kept_for_another_is_named() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=2),
        running(1, {"n1": (0,)}, time_limit_seconds=100.0),
        waiting(2, gpus=2),
        waiting(3, gpus=1),
    )
    explained = why(snapshot, "j-3")
    assert rules_of(explained) == ["kept"]
    assert explained.reasons[0].jobs == ("j-2",)
    assert explained.reasons[0].numbers == {"kept_gpus": 1.0}
    assert explained.ahead == ("j-2",)
    first = why(snapshot, "j-2")
    assert first.planned is not None
    assert first.planned.at == 100.0


def test_a_strict_queue_names_who_blocks() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=2),
        Queue(name="default", policy="fcfs", blocking=Blocking.STRICT),
        running(1, {"n1": (0,)}),
        waiting(2, gpus=2),
        waiting(3, gpus=1, time_limit_seconds=1.0),
    )
    explained = why(snapshot, "j-3")
    assert "order" in rules_of(explained)
    assert "j-2 waits in front" in next(reason.detail for reason in explained.reasons if reason.rule == "order")


def test_a_limit_reached_by_this_very_plan_is_a_reason() -> None:
    """Two jobs of ann arrive together, and she may hold one GPU: the second waits because of the first."""
    snapshot = snapshot_of(
        node("n1", gpus=2),
        PutRules(limits=Limits(max_gpus_per_user=1), score_time_constant=60.0),
        waiting(1, gpus=1),
        waiting(2, gpus=1),
    )
    explained = why(snapshot, "j-2")
    assert rules_of(explained) == ["gpus-per-user"]
    assert explained.reasons[0].numbers == {"asked": 1.0, "held": 1.0, "limit": 1}


def test_a_job_that_does_not_wait_says_so() -> None:
    snapshot = snapshot_of(node("n1", gpus=1), running(1, {"n1": (0,)}))
    assert why(snapshot, "j-1").summary == "it does not wait: it is running"
    created = Job(id="j-9", name="name", user="ann")
    assert "start it" in explain(snapshot, Plan(at=1.0), created, 1.0).summary


def test_gpus_out_of_use_are_named() -> None:
    gpus = tuple(replace(gpu, health=GpuHealth.SUSPECT) for gpu in node("n1", gpus=2).gpus)
    down = node("n2", gpus=3, state=NodeState.DOWN)
    snapshot = snapshot_of(node("n1", gpus=gpus), down, node("n3", gpus=1), waiting(1, gpus=2, avoid_nodes=("n3",)))
    (reason,) = explain(snapshot, schedule(snapshot, 10.0), snapshot.jobs["j-1"], 10.0).reasons
    assert reason.rule == "impossible"
    assert reason.detail.endswith(
        "; 2 GPUs are suspect or failed, 3 GPUs are on nodes that are not ready, "
        "1 GPU is avoided because it failed there before"
    )


def test_an_elastic_job_that_shrinks_is_named() -> None:
    bounds = Elastic(min_gpus=1, max_gpus=4)
    elastic = replace(running(1, {"n1": (0, 1, 2, 3)}), elastic=bounds, restart_unsaved=True, grace_seconds=30.0)
    snapshot = snapshot_of(node("n1", gpus=4), elastic, waiting(2, gpus=2))
    plan = schedule(snapshot, 10.0)
    (resize,) = plan.resizes
    shrinking = advance(elastic, ResizeRequested(at=10.0, allocation=resize.allocation)).job
    snapshot.apply([PutJob(job=shrinking)])
    explanation = explain(snapshot, schedule(snapshot, 11.0), snapshot.jobs["j-2"], 11.0)
    explained = next(reason for reason in explanation.reasons if reason.rule == "resizing")
    assert explained.detail == "j-1 gives back 2 of its GPUs, within 30s at the latest"
    assert (explained.jobs, explained.numbers["coming_gpus"]) == (("j-1",), 2)


# ---------------------------------------------------------------- who makes room, and when


def _preempting() -> PutRules:
    return PutRules(limits=Limits(), score_time_constant=3600.0, preemption=PreemptionRules(enabled=True))


def test_the_victims_that_are_stopping_are_named_with_their_time() -> None:
    queue = Queue(name="default", policy="priority", preempts=True)
    victim = running(7, {"n1": (0, 1)}, priority=9, grace_seconds=30.0)
    snapshot = snapshot_of(_preempting(), queue, node("n1", 2), victim, waiting(8, gpus=2, priority=1))
    plan = schedule(snapshot, 5_000.0)
    explained = explain(snapshot, plan, snapshot.jobs["j-8"], 5_000.0)
    assert explained.summary == "j-7 is being preempted for it, within 30s"
    assert [reason.rule for reason in explained.reasons] == ["giving-way", "resources"]
    assert explained.reasons[0].numbers == {"coming_gpus": 2.0, "grace_seconds": 30.0}


def test_gpus_owed_to_other_queues_are_a_reason_with_numbers() -> None:
    lab, rest = Queue(name="lab", guaranteed_gpus=3), Queue(name="rest")
    snapshot = snapshot_of(_preempting(), lab, rest, node("n1", 4), waiting(1, queue="rest", gpus=2, preemptible=False))
    explained = explain(snapshot, schedule(snapshot, 100.0), snapshot.jobs["j-1"], 100.0)
    assert [reason.rule for reason in explained.reasons] == ["owed"]
    assert explained.reasons[0].numbers == {"asked": 2.0, "free": 4.0, "owed": 3.0, "limit": 1}
    assert explained.summary == (
        "it cannot be preempted, and 3 GPUs of 4 in pool default are guaranteed to other queues: asks 2, at most 1 for "
        "such a job; it can never start under this limit"
    )


def test_a_limit_below_the_job_is_reported_as_permanent_without_an_estimate() -> None:
    snapshot = snapshot_of(
        node("n1", 4), Queue(name="small", max_gpus=1), waiting(1, queue="small", gpus=2), waiting(2)
    )
    plan = schedule(snapshot, 100.0)
    explained = explain(snapshot, plan, snapshot.jobs["j-1"], 100.0)
    assert explained.summary == "queue small may hold 1 GPU: asks 2, holds 0; it can never start under this limit"
    assert explained.planned is None
    assert "j-1" not in forecast(snapshot, 100.0).estimates


def test_a_planned_start_names_the_jobs_that_it_waits_for() -> None:
    ends = running(1, {"n1": (0,)}, time_limit_seconds=600.0)
    later = running(2, {"n1": (1,)}, time_limit_seconds=6_000.0)
    snapshot = snapshot_of(node("n1", 2), ends, later, waiting(3, gpus=1))
    explained = explain(snapshot, schedule(snapshot, 0.0), snapshot.jobs["j-3"], 0.0)
    assert "it will run on n1 when j-1 has ended, in 10m at the latest" in explained.summary


def test_gpus_that_are_reserved_for_others_are_not_free_for_the_job() -> None:
    gpus = tuple(f"n1/{place}" for place in (2, 3))
    reservation = Reservation(name="for-bob", pool="default", gpus=gpus, users=("bob",), lends=False)
    snapshot = snapshot_of(
        node("n1", gpus=4), running(1, {"n1": (0,)}), waiting(2, gpus=4), PutReservation(reservation=reservation)
    )
    plan = schedule(snapshot, 0.0)
    reasons = {reason.rule: reason for reason in explain(snapshot, plan, snapshot.jobs["j-2"], 0.0).reasons}
    assert reasons["resources"].numbers["free_gpus"] == 1
    assert reasons["resources"].numbers["most_free_on_a_node"] == 1
    assert "1 GPU is free in pool default, at most 1 on one node" in reasons["resources"].detail
    owner = replace(snapshot.jobs["j-2"], user="bob")
    snapshot.apply([PutJob(job=owner)])
    (reason,) = [each for each in explain(snapshot, plan, owner, 0.0).reasons if each.rule == "resources"]
    assert reason.numbers["free_gpus"] == 3, "the owner of the reservation may use them"
