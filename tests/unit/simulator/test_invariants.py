"""Invariants of every history, for any cluster and any arrivals."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from corral.core.fleet.resources import NOTHING, Amount, held_by
from corral.core.model import WHOLE, Job, JobKind, JobState
from corral.core.people.quota import quota_kinds
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.simulator.simulation import Simulation
from tests.unit.core.recount import check_allocation, check_never_oversubscribed, dump_snapshot, free_on
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR


@DEAR
@given(histories())
def test_nothing_is_held_twice_and_no_limit_is_exceeded(history: History) -> None:
    simulation = history.simulation()
    nodes, queues = dict(simulation.snapshot.nodes), dict(simulation.snapshot.queues)
    by_id = {arrival.job.id: arrival.job for arrival in history.arrivals}
    started = []
    for step in simulation:
        _check_limits(simulation.snapshot, step.plan)
        expected = free_on(simulation.snapshot)
        for slot in simulation.snapshot.fleet.slots:
            assert (slot.free_cpu_milli, slot.free_memory_bytes, slot.free_milli) == expected[slot.node.id]
        for start in step.plan.starts:
            job = by_id[start.job_id]
            check_allocation(nodes, queues[job.queue].pool, job, start.allocation)
            started.append(job.id)
    check_never_oversubscribed(nodes.values(), simulation.allocations)
    _check_all_accounted_for(simulation, started, by_id)


def _check_all_accounted_for(simulation: Simulation, started: list[str], arrived: dict[str, Job]) -> None:
    """Each job started at most once; what started has ended, and everything else still waits."""
    assert len(set(started)) == len(started)
    assert set(started) == simulation.finished.keys()
    assert all(job.state is JobState.COMPLETED and job.allocation is None for job in simulation.finished.values())
    assert simulation.snapshot.jobs.keys() == arrived.keys() - set(started)


def _check_limits(snapshot: ClusterSnapshot, plan: Plan) -> None:
    """Checks limits with the plan's starts added to the held resources, counted from the allocations."""
    holding: list[tuple[Job, Amount]] = [
        (job, held_by(job.allocation)) for job in snapshot.jobs.values() if job.allocation is not None
    ]
    holding += [(snapshot.jobs[start.job_id], held_by(start.allocation)) for start in plan.starts]
    by_user: dict[str, int] = defaultdict(int)
    by_queue: dict[str, int] = defaultdict(int)
    by_kind: dict[tuple[str, JobKind], Amount] = defaultdict(lambda: NOTHING)
    for job, amount in holding:
        by_user[job.user] += amount.gpu_milli
        by_queue[job.queue] += amount.gpu_milli
        for kind in quota_kinds(job):
            by_kind[job.user, kind] += amount
    limits = snapshot.limits
    assert sum(by_user.values()) <= _milli(limits.max_total_gpus)
    assert all(held <= _milli(limits.max_gpus_per_user) for held in by_user.values())
    assert all(amount.gpu_milli <= _milli(limits.max_gpus_per_job) for _, amount in holding)
    assert all(by_queue[name] <= _milli(queue.max_gpus) for name, queue in snapshot.queues.items())
    for key, quota in snapshot.quotas.items():
        assert quota.gpu_milli is None or by_kind[key].gpu_milli <= quota.gpu_milli
        assert quota.cpu_milli is None or by_kind[key].cpu_milli <= quota.cpu_milli
        assert quota.memory_bytes is None or by_kind[key].memory_bytes <= quota.memory_bytes


def _milli(limit: int | None) -> float:
    return float("inf") if limit is None else limit * WHOLE


@DEAR
@given(histories(), st.integers(0, 2**16))
def test_planning_changes_nothing_and_equal_snapshots_give_equal_plans(history: History, seed: int) -> None:
    random = Random(seed)
    simulation = history.simulation()
    for step in simulation:
        snapshot = simulation.snapshot
        before = dump_snapshot(snapshot)
        contents = list(snapshot.contents())
        assert schedule(snapshot, step.at) == step.plan
        assert dump_snapshot(snapshot) == before
        assert list(snapshot.contents()) == contents
        assert dump_snapshot(ClusterSnapshot(contents)) == before
        random.shuffle(contents)
        assert schedule(ClusterSnapshot(contents), step.at) == step.plan


@DEAR
@given(histories())
def test_job_never_gets_avoided_nodes_and_keeps_its_back_off(history: History) -> None:
    """Half of the GPUs and one node are avoided by every job, and every third backs off, as after failures."""
    gpus = sorted(gpu.id for node in history.snapshot().nodes.values() for gpu in node.gpus)
    arrivals = tuple(
        replace(
            arrival,
            job=replace(
                arrival.job,
                state=JobState.QUEUED,
                queued_at=arrival.job.created_at,
                avoid_gpus=tuple(gpus[::2]),
                avoid_nodes=("n0",),
                not_before=arrival.job.created_at + 7 if number % 3 == 0 else 0.0,
            ),
        )
        for number, arrival in enumerate(history.arrivals)
    )
    simulation = History(cluster=history.cluster, arrivals=arrivals).simulation()
    nodes, queues = dict(simulation.snapshot.nodes), dict(simulation.snapshot.queues)
    by_id = {arrival.job.id: arrival.job for arrival in arrivals}
    for step in simulation:
        assert step.plan.wake_at is None or step.plan.wake_at > step.at
        for start in step.plan.starts:
            job = by_id[start.job_id]
            check_allocation(nodes, queues[job.queue].pool, job, start.allocation)
            assert job.not_before <= step.at
