"""Invariants of every preemption: random crowds in queues with guarantees and orders that preempt."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.core.jobs.lifecycle import Planned, advance
from corral.core.model import (
    WHOLE,
    Blocking,
    Elastic,
    Job,
    JobKind,
    JobState,
    Prediction,
    Queue,
    Request,
)
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import OrderingRules, aged_from
from corral.core.scheduling.placement.search import could_ever_fit, find_place
from corral.core.scheduling.plan.plan import Plan, Preemption, PreemptionRule
from corral.core.scheduling.preemption.preemption import lost_gpu_seconds
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import BackfillRules, Limits, PreemptionRules
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.recount import check_never_oversubscribed, free_on
from tests.unit.searching import DEAR, between, every, pick, seconds

RANKED = ("priority", "shortest", "weighted")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    rules: PutRules
    queues: tuple[Queue, ...]
    gpus: tuple[int, ...]
    arrivals: tuple[Arrival, ...]

    def simulation(self) -> Simulation:
        machines = [PutNode(node=node(f"n{number}", gpus)) for number, gpus in enumerate(self.gpus)]
        changes: list[Change] = [self.rules, *machines, *(PutQueue(queue=queue) for queue in self.queues)]
        return Simulation(snapshot=ClusterSnapshot(changes), arrivals=self.arrivals)


BLOCKING = (Blocking.BACKFILL, Blocking.BACKFILL, Blocking.STRICT)
HOUSES = every(
    ageing=(0.1, 1.0, 4.0),
    unknown_seconds=(5.0, 50.0),
    min_run_seconds=(0.0, 5.0, 20.0),
    margin=(0.0, 0.0, 0.3),
    patience=(0.0, 0.0, 7.0),
    moves=(False, True),
    protected=(1, 1, 3),
    hold_after=(0.0, 15.0),
    gang_patience=(None, 10.0),
    unknown_margin=(0.0, 0.8),
    lab_guaranteed=(0, 2, 4),
    lab_blocking=BLOCKING,
    rest_guaranteed=(0, 0, 2),
    policy=RANKED,
    ranked_blocking=BLOCKING,
    count=(12, 8, 5),
)
COMERS = every(
    nodes=(1, 1, 1, 1, 1, 2),
    gpus=(1, 1, 2, 4),
    share=(0, 0, 0, 0, 400, 700),
    cpu_milli=(0, 0, 16_000),
    is_elastic=(False, False, False, False, False, False, True),
    runs=seconds(2, 60),
    predicted=(None, (4.0, 9.0), (30.0, 40.0)),
    user=("ann", "bob", "eve"),
    queue=("lab", "rest", "ranked", "ranked"),
    priority=(1, 5, 9),
    created_at=seconds(0, 30),
    time_limit_seconds=(None, None, 20.0, 70.0),
    grace_seconds=(0.0, 3.0),
    preemptible=(True, True, True, False),
    saves=(False, True),
)


@st.composite
def crowds(draw: st.DrawFn, *, enabled: bool = True, is_known: bool = False) -> Crowd:
    """Few GPUs and many jobs. If run times are known, they are as predicted, and everybody saves."""
    house = draw(HOUSES)
    rules = PutRules(
        limits=Limits(),
        score_time_constant=60.0,
        ordering=OrderingRules(
            ageing=house["ageing"],
            unknown_seconds=house["unknown_seconds"],
            unknown_margin=house["unknown_margin"],
        ),
        preemption=PreemptionRules(
            enabled=enabled,
            min_run_seconds=house["min_run_seconds"],
            margin=house["margin"],
            patience_seconds=house["patience"],
            moves=house["moves"],
            gang_patience_seconds=house["gang_patience"],
        ),
        backfill=BackfillRules(protected=house["protected"], hold_after_seconds=house["hold_after"]),
    )
    queues = (
        Queue(name="lab", policy="fcfs", guaranteed_gpus=house["lab_guaranteed"], blocking=house["lab_blocking"]),
        Queue(name="rest", policy="fair-share", guaranteed_gpus=house["rest_guaranteed"]),
        Queue(name="ranked", policy=house["policy"], preempts=True, blocking=house["ranked_blocking"]),
    )
    gpus = tuple(draw(st.lists(pick(4, 2, 4, 1), min_size=1, max_size=3)))
    arrivals = tuple(comer(serial, draw(COMERS), is_known=is_known) for serial in range(1, house["count"] + 1))
    return Crowd(rules=rules, queues=queues, gpus=gpus, arrivals=arrivals)


def comer(serial: int, drawn: dict[str, Any], *, is_known: bool) -> Arrival:
    is_gang, share, runs = drawn["nodes"] > 1, drawn["share"], drawn["runs"]
    predicted, is_elastic = drawn["predicted"], drawn["is_elastic"] and not is_gang and not share
    if is_known:
        predicted, is_elastic = (runs, runs), False
    job = Job(
        id=f"j-{serial}",
        name=f"job-{serial}",
        user=drawn["user"],
        kind=JobKind.DISTRIBUTED if is_gang else JobKind.TRAINING,
        queue=drawn["queue"],
        request=Request(
            nodes=drawn["nodes"],
            gpus=0 if share else (1 if is_elastic else drawn["gpus"]),
            gpu_milli=share,
            cpu_milli=drawn["cpu_milli"],
        ),
        priority=drawn["priority"],
        created_at=drawn["created_at"],
        time_limit_seconds=None if is_known else drawn["time_limit_seconds"],
        grace_seconds=drawn["grace_seconds"],
        preemptible=drawn["preemptible"],
        elastic=Elastic(min_gpus=1, max_gpus=3) if is_elastic else None,
        predicted=predicted and Prediction(p50_seconds=predicted[0], p90_seconds=predicted[1], samples=3),
    )
    return Arrival(job=job, run_seconds=runs, saves=is_known or drawn["saves"])


# ---------------------------------------------------------------- every plan


@DEAR
@given(crowds())
def test_every_preemption_keeps_the_rules(crowd: Crowd) -> None:
    simulation = crowd.simulation()
    nodes, chosen = dict(simulation.snapshot.nodes), 0
    for step in simulation:
        snapshot = simulation.snapshot
        expected = free_on(snapshot)
        for slot in snapshot.fleet.slots:
            assert (slot.free_cpu_milli, slot.free_memory_bytes, slot.free_milli) == expected[slot.node.id]
        assert step.plan.wake_at is None or step.plan.wake_at > step.at
        victims = [one.job_id for one in step.plan.preemptions]
        assert len(set(victims)) == len(victims)
        assert not set(victims) & {resize.job_id for resize in step.plan.resizes}
        for one in step.plan.preemptions:
            check_preemption(snapshot, step.plan, one, step.at)
        chosen += len(victims)
        assert chosen <= 40 * len(crowd.arrivals), "preemption must come to an end"
    check_never_oversubscribed(nodes.values(), simulation.allocations)
    left = simulation.snapshot.jobs.values()
    assert all(job.state is JobState.QUEUED and could_never_run(simulation.snapshot, job) for job in left)


def check_preemption(snapshot: ClusterSnapshot, plan: Plan, one: Preemption, now: float) -> None:
    victim, job = snapshot.jobs[one.job_id], snapshot.jobs[one.for_job]
    assert job.state is JobState.QUEUED
    assert victim.state is JobState.RUNNING
    assert victim.preemptible
    assert victim.allocated_at is not None
    assert now - victim.allocated_at >= snapshot.preemption.min_run_seconds
    assert one.lost_gpu_seconds == lost_gpu_seconds(victim, now)
    assert one.detail
    planned = plan.planned_start(job.id)
    assert planned is not None, "who is made room for has a start to count on"
    assert now <= planned.at <= now + 3.0
    if one.to is None:
        check_rule(snapshot, one.rule, victim, job, now)
    else:
        check_move(snapshot, one, victim, job)


def check_move(snapshot: ClusterSnapshot, one: Preemption, moved: Job, job: Job) -> None:
    """It is known to save, and goes on at once: with as many GPUs, which are free, and on another node."""
    assert one.to is not None
    assert moved.allocation is not None
    assert (one.rule, snapshot.preemption.moves, moved.queue) == (PreemptionRule.MOVE, True, job.queue)
    assert moved.checkpointed_at is not None or moved.saved_seconds > 0
    assert one.to.total_gpu_milli == moved.allocation.total_gpu_milli
    assert {grant.node for grant in one.to.grants}.isdisjoint(grant.node for grant in moved.allocation.grants)
    for grant in one.to.grants:
        assert all(snapshot.fleet.slot(grant.node).free_milli[gpu] >= grant.gpu_milli for gpu in grant.gpus)


def check_rule(snapshot: ClusterSnapshot, rule: PreemptionRule, victim: Job, job: Job, now: float) -> None:
    """The victim stands strictly after the other, computed independently."""
    held = {
        name: sum(
            other.request.total_gpu_milli
            for other in snapshot.jobs.values()
            if other.allocation and other.queue == name
        )
        for name in snapshot.queues
    }
    match rule:
        case PreemptionRule.GUARANTEE:
            assert victim.queue != job.queue
            assert held[job.queue] + job.request.total_gpu_milli <= snapshot.queues[job.queue].guaranteed_gpus * WHOLE
            assert held[victim.queue] > snapshot.queues[victim.queue].guaranteed_gpus * WHOLE
        case PreemptionRule.ORDER:
            assert victim.queue == job.queue == "ranked"
            policy = POLICIES[snapshot.queues["ranked"].policy]
            rank = policy.rank
            assert rank is not None
            if policy.looks_at_run_times:
                assert now >= (job.queued_at or 0.0) + snapshot.preemption.patience_seconds
            assert rank(job, snapshot.ordering, now).place < rank(victim, snapshot.ordering, now).place
        case PreemptionRule.OVERRUN:
            patience = snapshot.preemption.gang_patience_seconds
            if patience is None or not job.request.is_gang or now < aged_from(job) + patience:
                assert victim.time_limit_seconds is None
                assert victim.predicted is not None
                assert victim.likely_end <= now
            assert (aged_from(job), job.serial) < (aged_from(victim), victim.serial)
        case _:
            raise AssertionError(f"nothing is reserved: {rule}")


def could_never_run(snapshot: ClusterSnapshot, job: Job) -> bool:
    """Alone on the whole cluster it would not fit, or would take what others are owed."""
    owed = sum(queue.guaranteed_gpus for queue in snapshot.queues.values() if queue.name != job.queue) * WHOLE
    everything = sum(len(one.gpus) for one in snapshot.nodes.values()) * WHOLE
    takes_owed = not job.preemptible and everything - job.request.total_gpu_milli < owed
    return takes_owed or not could_ever_fit(snapshot.fleet, job, "default")


@DEAR
@given(crowds())
def test_a_job_starts_when_its_victims_have_ended(crowd: Crowd) -> None:
    """No other job gets the freed GPUs, and no more jobs are preempted meanwhile."""
    simulation = crowd.simulation()
    served: set[str] = set()
    for step in simulation:
        snapshot = simulation.snapshot
        starting = {start.job_id for start in step.plan.starts}
        moving = {one.for_job for one in step.plan.preemptions if one.to is not None}
        for job_id in sorted(served - starting - moving):
            job = snapshot.jobs.get(job_id)
            assert job is not None
            assert snapshot.victims_stopping.get(job_id), f"{job_id} waits although all victims are gone"
        served = (served - starting) | {one.for_job for one in step.plan.preemptions}
        again = [one for one in step.plan.preemptions if one.to is None and snapshot.victims_stopping.get(one.for_job)]
        assert not again, "the stopping victims were enough"


# ---------------------------------------------------------------- no cycles


@DEAR
@given(crowds(is_known=True))
def test_no_job_preempts_back(crowd: Crowd) -> None:
    """If run times are known, of two jobs it is always the same one that is preempted for the other."""
    simulation = crowd.simulation()
    pairs: set[tuple[str, str]] = set()
    for step in simulation:
        for one in step.plan.preemptions:
            if one.to is None:
                pairs.add((one.for_job, one.job_id))
                assert (one.job_id, one.for_job) not in pairs


def test_lost_work_of_an_ending_job_is_no_run_time() -> None:
    """Twice a gang of eight GPUs is interrupted for a guarantee, and each time it saves and then holds its GPUs for
    three seconds more. It still takes as long as predicted: those six seconds do not let it seem to outlive that, and
    be preempted with its last second left for the other gang, which was preempted for it before."""

    def coming(serial: int, queue: str, at: float, nodes: int, gpus: int, runs: float, grace: float = 0.0) -> Arrival:
        job = Job(
            id=f"j-{serial}",
            name=f"job-{serial}",
            user="ann",
            kind=JobKind.DISTRIBUTED if nodes > 1 else JobKind.TRAINING,
            queue=queue,
            request=Request(nodes=nodes, gpus=gpus),
            created_at=at,
            grace_seconds=grace,
            predicted=Prediction(p50_seconds=runs, p90_seconds=runs, samples=3),
        )
        return Arrival(job=job, run_seconds=runs, saves=True)

    crowd = Crowd(
        rules=PutRules(
            limits=Limits(),
            score_time_constant=60.0,
            ordering=OrderingRules(ageing=0.1, unknown_seconds=5.0, unknown_margin=0.0),
            preemption=PreemptionRules(enabled=True, min_run_seconds=0.0, margin=0.0),
        ),
        queues=(
            Queue(name="rest", policy="fair-share", guaranteed_gpus=2),
            Queue(name="ranked", policy="shortest", preempts=True),
        ),
        gpus=(4, 4),
        arrivals=(
            coming(1, "ranked", 2.0, 2, 2, 31.0),
            coming(2, "ranked", 2.0, 2, 4, 15.0, grace=3.0),
            coming(3, "rest", 3.0, 1, 1, 2.0),
            coming(4, "rest", 9.0, 1, 1, 2.0),
        ),
    )
    simulation = crowd.simulation()
    for _ in simulation:
        pass
    assert [(at, one.job_id, one.for_job) for at, one in simulation.preemptions] == [
        (3.0, "j-2", "j-3"),
        (8.0, "j-1", "j-2"),
        (9.0, "j-2", "j-4"),
        (14.0, "j-1", "j-2"),
    ]
    # Two of its fifteen seconds were done before the second interruption.
    assert simulation.finished["j-2"].ended_at == 14.0 + 13.0


@settings(max_examples=5)
@given(st.integers(0, 2**16), st.sampled_from(RANKED), st.booleans(), st.booleans(), st.booleans())
def test_a_long_crowd_is_not_interrupted_without_end(
    seed: int, policy: str, is_known: bool, saves: bool, moves: bool
) -> None:
    """Sixty jobs on 16 GPUs: each is interrupted a few times, and all are done."""
    choose = Random(seed).choice
    count = 60
    arrivals = []
    for serial in range(1, count + 1):
        runs = choose([10.0, 30.0, 100.0, 1_000.0])
        prediction = Prediction(p50_seconds=runs, p90_seconds=runs, samples=3) if is_known else None
        job = Job(
            id=f"j-{serial}",
            name=f"job-{serial}",
            user="ann",
            queue="ranked",
            request=Request(gpus=choose([1, 1, 2, 4, 8])),
            priority=choose([1, 5, 9]),
            created_at=serial * 20.0,
            grace_seconds=2.0,
            predicted=prediction,
        )
        arrivals.append(Arrival(job=job, run_seconds=runs, saves=saves or policy != "priority"))
    crowd = Crowd(
        rules=PutRules(
            limits=Limits(),
            score_time_constant=60.0,
            preemption=PreemptionRules(enabled=True, min_run_seconds=5.0, moves=moves),
        ),
        queues=(Queue(name="ranked", policy=policy, preempts=True),),
        gpus=(8, 8),
        arrivals=tuple(arrivals),
    )
    simulation = crowd.simulation()
    for _ in simulation:
        pass
    assert len(simulation.finished) == count
    assert len(simulation.preemptions) <= 3 * count


# ---------------------------------------------------------------- the victims


@st.composite
def full_nodes(draw: st.DrawFn) -> tuple[ClusterSnapshot, Job]:
    """Running jobs of one queue, and one that waits before them all."""
    sizes = draw(st.lists(st.sampled_from([2, 4]), min_size=1, max_size=3))
    things: list[Job] = []
    serial = itertools.count(1)
    for number, size in enumerate(sizes):
        index = 0
        while index < size:
            gpus = min(size - index, draw(pick(1, 1, 2)))
            if draw(between(0, 5)):
                things.append(
                    running(
                        next(serial),
                        {f"n{number}": tuple(range(index, index + gpus))},
                        queue="ranked",
                        priority=draw(pick(1, 9, 9, 9)),
                        preemptible=draw(between(0, 5)) > 0,
                        allocated_at=draw(pick(0.0, 50.0)),
                        checkpointed_at=draw(pick(None, 60.0, 90.0)),
                    )
                )
            index += gpus
    wants = waiting(99, queue="ranked", priority=5, nodes=draw(pick(1, 1, 2)), gpus=draw(pick(1, 2, 3, 4)))
    rules = PutRules(
        limits=Limits(), score_time_constant=60.0, preemption=PreemptionRules(enabled=True, min_run_seconds=0.0)
    )
    queue = Queue(name="ranked", policy="priority", preempts=True)
    machines = [node(f"n{number}", size) for number, size in enumerate(sizes)]
    return snapshot_of(rules, queue, *machines, *things, wants), wants


@given(full_nodes())
def test_the_victims_lose_the_least_and_none_could_be_spared(case: tuple[ClusterSnapshot, Job]) -> None:
    snapshot, job = case
    now = 100.0
    plan = schedule(snapshot, now)
    chosen = {one.job_id for one in plan.preemptions}
    able = [one for one in snapshot.jobs.values() if one.allocation and one.preemptible and one.priority == 9]
    fitting = [
        set_of
        for count in range(len(able) + 1)
        for set_of in itertools.combinations(able, count)
        if fits_without(snapshot, job, set_of)
    ]
    if any(start.job_id == job.id for start in plan.starts) or not fitting:
        assert not chosen
        assert bool(plan.starts) == (() in fitting)
        return

    def loss(set_of: tuple[Job, ...]) -> tuple[float, int, float]:
        return (
            math.fsum(lost_gpu_seconds(one, now) for one in set_of),
            len(set_of),
            -math.fsum(one.allocated_at or 0.0 for one in set_of),
        )

    assert loss(tuple(one for one in able if one.id in chosen)) == min(loss(set_of) for set_of in fitting)
    assert chosen in [{one.id for one in set_of} for set_of in fitting]


def fits_without(snapshot: ClusterSnapshot, job: Job, gone: tuple[Job, ...]) -> bool:
    copy = ClusterSnapshot([*snapshot.contents(), *(DropJob(id=one.id) for one in gone)])
    return find_place(copy.fleet, job, "default", "pack") is not None


# ---------------------------------------------------------------- switched off


@DEAR
@given(crowds(enabled=False))
def test_without_preemption_guarantees_and_preempts_decide_nothing(crowd: Crowd) -> None:
    plain = replace(crowd, queues=tuple(replace(queue, guaranteed_gpus=0, preempts=False) for queue in crowd.queues))
    steps = [(step.at, step.plan) for step in crowd.simulation()]
    assert steps == [(step.at, step.plan) for step in plain.simulation()]
    assert not any(plan.preemptions for _, plan in steps)


@DEAR
@given(crowds())
def test_equal_content_decides_alike(crowd: Crowd) -> None:
    simulation = crowd.simulation()
    for step in simulation:
        copy = ClusterSnapshot(reversed(list(simulation.snapshot.contents())))
        assert schedule(copy, step.at) == step.plan


def test_a_start_clears_what_it_gave_up() -> None:
    job = replace(waiting(1, gpus=1), preempted_for="j-9")
    snapshot = snapshot_of(node("n1", 1), job)
    assert snapshot.victims_requeued == {"j-9": {"j-1"}}
    (start,) = schedule(snapshot, 5.0).starts
    snapshot.apply([PutJob(job=advance(job, Planned(at=5.0, allocation=start.allocation)).job)])
    assert not snapshot.victims_requeued
    assert not snapshot.victims_stopping
