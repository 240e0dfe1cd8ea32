"""Moves over whole runs: jobs that go on elsewhere lose nothing but the way, and others start by it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.core.model import JobState
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import PreemptionRules
from corral.simulator.fleets import parse_fleet
from corral.simulator.replay import Rules, cluster_of, replay
from corral.simulator.simulation import Simulation
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload, in_order

MOVING = Rules(
    policy="shortest",
    preempts=True,
    placement="spread",
    preemption=PreemptionRules(enabled=True, min_run_seconds=0.0, moves=True),
    ordering=OrderingRules(ageing=0.001),
)
STAYING = replace(MOVING, preemption=replace(MOVING.preemption, moves=False))


def workload(*jobs: TraceJob, fleet: str = "2x4") -> Workload:
    return Workload(parse_fleet(fleet), in_order(jobs), Counter(), time_limits=TimeLimits.KNOWN)


def job(name: str, at: float, seconds: float, gpus: int) -> TraceJob:
    return TraceJob(name=name, user="ann", submitted_at=at, run_seconds=seconds, gpus=gpus)


def test_a_whole_node_job_starts_at_once_and_the_moved_one_loses_the_way_only() -> None:
    work = workload(job("left", 0, 100, 1), job("right", 0, 100, 1), job("large", 10, 50, 4))
    assert replay(work, STAYING).completions.most == 140.0, "it waits until one of them is done"
    outcome = replay(work, MOVING)
    assert (outcome.moves, outcome.preemptions, outcome.completions.most) == (1, 0, 100.0)
    paid = replay(work, replace(MOVING, preemption_cost=7.0))
    assert (paid.completions.most, paid.lost_gpu_seconds) == (107.0, 7.0)


@st.composite
def crumbs(draw: st.DrawFn) -> Workload:
    """Small jobs all over the nodes, and large ones that come among them."""
    small = [
        job(f"s-{number}", draw(st.integers(0, 3)), draw(st.integers(5, 80)), draw(st.sampled_from([1, 1, 2])))
        for number in range(draw(st.integers(3, 14)))
    ]
    large = [
        job(f"l-{number}", draw(st.integers(4, 60)), draw(st.integers(1, 40)), draw(st.sampled_from([3, 4, 8])))
        for number in range(draw(st.integers(1, 6)))
    ]
    return workload(*small, *large, fleet=draw(st.sampled_from(["2x4", "3x4"])))


@settings(max_examples=25)
@given(crumbs(), st.sampled_from([0.0, 5.0]))
def test_every_move_lets_a_job_start_and_time_goes_on(work: Workload, min_run: float) -> None:
    rules = replace(MOVING, preemption=replace(MOVING.preemption, min_run_seconds=min_run))
    simulation = Simulation(snapshot=ClusterSnapshot(cluster_of(work.nodes, rules)), arrivals=work.arrivals())
    at, plans, last_moved = -1.0, 0, dict[str, float]()
    served: set[str] = set()
    for step in simulation:
        plans = plans + 1 if step.at == at else 0
        at = step.at
        assert plans <= 12 * len(work.jobs), "at one moment those who run only get further to the front"
        moves = [one for one in step.plan.preemptions if one.to is not None]
        for one in moves:
            assert simulation.snapshot.jobs[one.for_job].state is JobState.QUEUED
            assert step.at - last_moved.get(one.job_id, -min_run) >= min_run
            last_moved[one.job_id] = step.at
        served = (served | {one.for_job for one in moves}) - {start.job_id for start in step.plan.starts}
        if step.ended or step.arrived or step.plan.starts:
            continue  # others may be before it by now, such as one that was preempted at the same moment
        waiting = served - {one.for_job for one in step.plan.preemptions}
        assert all(simulation.snapshot.victims_stopping.get(name) for name in waiting), "a move was made in vain"
    assert len(simulation.finished) == len(work.jobs)


@settings(max_examples=20)
@given(crumbs())
def test_gpu_time_with_moves_is_work_or_lost(work: Workload) -> None:
    outcome = replay(work, replace(MOVING, preemption_cost=3.0))
    needed = sum(one.run_seconds * one.gpus for one, _ in work.jobs)
    assert outcome.gpu_seconds == pytest.approx(needed + outcome.lost_gpu_seconds)
    assert outcome.lost_gpu_seconds <= 3.0 * 8 * (outcome.preemptions + outcome.moves)
    assert outcome.cut_jobs == outcome.unfinished_jobs == 0
