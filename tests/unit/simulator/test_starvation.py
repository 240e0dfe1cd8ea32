"""No job starves under `shortest` and `weighted`: a job that is queued later than another's bound never takes its turn.

The bound is stated in the policies: what is queued more than `bound_seconds` after a job stands behind it. In a strict
queue it then starts behind it, too. Where jobs may be backfilled, one behind may start first, but only on what the
first job that waits cannot use now.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import (
    Blocking,
    Job,
    JobState,
    Queue,
    Request,
)
from corral.core.scheduling.ordering import shortest, weighted
from corral.core.scheduling.ordering.cost import OrderingRules, Weights
from corral.core.scheduling.placement.search import could_ever_fit, find_place
from corral.core.snapshot.changes import PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.trial import Trial
from corral.core.snapshot.waiting_lines import line_of
from corral.simulator.simulation import Arrival, Simulation, Step
from tests.unit.core.builders import node
from tests.unit.core.strategies import TIME_CONSTANT, arrivals, nodes
from tests.unit.searching import DEAR, between, pick

POLICIES = {"shortest": shortest, "weighted": weighted}
#: fast enough for bounds that end within the histories
RULES = OrderingRules(ageing=8.0, weights=Weights(age=2000.0), unknown_seconds=40.0)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Arrival, ...]:
    """More than fits, over a time in which many bounds pass; no job is pinned, and none has a limit."""
    drawn = draw(arrivals(most=24))
    at = 0.0
    made = []
    for arrival in drawn:
        at += draw(pick(0.0, 0.0, 1.0, 4.0, 15.0))
        made.append(replace(arrival, job=replace(arrival.job, created_at=at, pinned_at=None)))
    return tuple(made)


def simulated(policy: str, blocking: Blocking, jobs: tuple[Arrival, ...], data: st.DataObject) -> Simulation:
    machines = [data.draw(nodes(n, always_usable=True, one_pool=True)) for n in range(data.draw(between(1, 3)))]
    return Simulation(
        snapshot=ClusterSnapshot(
            [
                PutRules(limits=Limits(), score_time_constant=TIME_CONSTANT, ordering=RULES),
                PutQueue(queue=Queue(name="default", policy=policy, blocking=blocking)),
                *(PutNode(node=machine) for machine in machines),
            ]
        ),
        arrivals=jobs,
    )


def overdue(policy: str, simulation: Simulation, step: Step, later: Job) -> list[Job]:
    """The jobs that wait in the line of `later` after this step, and were queued longer before it than
    the own bound.
    """
    starting = {start.job_id for start in step.plan.starts}
    return [
        job
        for job in simulation.snapshot.jobs.values()
        if job.state is JobState.QUEUED
        and job.id not in starting
        and line_of(job) == line_of(later)
        and (later.queued_at or 0.0) > (job.queued_at or 0.0) + POLICIES[policy].bound_seconds(job, RULES) + 1e-3
    ]


@pytest.mark.parametrize("policy", POLICIES)
@DEAR
@given(jobs=crowds(), data=st.data())
def test_in_a_strict_queue_nothing_queued_after_the_bound_starts_first(
    policy: str, jobs: tuple[Arrival, ...], data: st.DataObject
) -> None:
    simulation = simulated(policy, Blocking.STRICT, jobs, data)
    for step in simulation:
        for start in step.plan.starts:
            for waiting in overdue(policy, simulation, step, simulation.snapshot.jobs[start.job_id]):
                # What no node can ever hold blocks no job.
                assert not could_ever_fit(simulation.snapshot.fleet, waiting, "default"), (waiting.id, start.job_id)


@pytest.mark.parametrize("policy", POLICIES)
@DEAR
@given(jobs=crowds(), data=st.data())
def test_nothing_queued_after_the_bound_starts_before_a_job_that_could_have_started(
    policy: str, jobs: tuple[Arrival, ...], data: st.DataObject
) -> None:
    """Without time limits nothing is lent, so that what is kept for others is out of reach for everybody alike."""
    endless = tuple(replace(arrival, job=replace(arrival.job, time_limit_seconds=None)) for arrival in jobs)
    simulation = simulated(policy, Blocking.BACKFILL, endless, data)
    for step in simulation:
        with simulation.snapshot.trial() as trial:
            for planned in step.plan.planned:
                trial.hold(planned.job_id, planned.held)
            for start in step.plan.starts:
                later = simulation.snapshot.jobs[start.job_id]
                for waiting in overdue(policy, simulation, step, later):
                    assert not _has_room(simulation.snapshot, trial, step, waiting), (waiting.id, later.id)
                trial.start(later, start.allocation)


def _has_room(snapshot: ClusterSnapshot, trial: Trial, step: Step, job: Job) -> bool:
    """Whether the job has room. Resources held for the job itself count as free."""
    planned = step.plan.planned_start(job.id)
    if planned is not None:
        trial.lift(job.id)
    place = find_place(snapshot.fleet, job, "default", "pack")
    if planned is not None:
        trial.hold(job.id, planned.held)
    return place is not None


@pytest.mark.parametrize(("policy", "turn"), [("shortest", 7), ("weighted", 2)])
def test_a_long_job_gets_its_turn_in_an_endless_stream_of_short_ones(policy: str, turn: int) -> None:
    """One GPU, a job of 60 s, and a short one of 10 s every 8 s: more than the GPU can do, for ever."""
    rules = OrderingRules(ageing=1.0, weights=Weights(age=300.0), unknown_seconds=60.0)
    long = Job(id="j-1", name="long", user="ann", request=Request(gpus=1), created_at=1.0, time_limit_seconds=60.0)
    short = [
        Job(
            id=f"j-{n + 2}",
            name="short",
            user="bob",
            request=Request(gpus=1),
            created_at=n * 8.0,
            time_limit_seconds=10.0,
        )
        for n in range(40)
    ]
    started = _order(policy, rules, [long, *short])
    assert started.index("j-1") == turn
    bound = POLICIES[policy].bound_seconds(replace(long, state=JobState.QUEUED), rules)
    ahead = started[:turn]
    assert all(float(job.created_at) <= 1.0 + bound for job in short if job.id in ahead)


def _order(policy: str, rules: OrderingRules, jobs: list[Job]) -> list[str]:
    simulation = Simulation(
        snapshot=ClusterSnapshot(
            [
                PutRules(limits=Limits(), score_time_constant=TIME_CONSTANT, ordering=rules),
                PutQueue(queue=Queue(name="default", policy=policy)),
                PutNode(node=node("n1", gpus=1)),
            ]
        ),
        arrivals=[Arrival(job=job, run_seconds=job.time_limit_seconds or 0.0) for job in jobs],
    )
    return [start.job_id for step in simulation for start in step.plan.starts]
