"""Runs in which the order preempts: jobs save, give way, come back with what they have left, and nothing is lost from
the count."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import (
    WHOLE,
    Elastic,
    Job,
    JobState,
    Queue,
    Request,
)
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT, ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from corral.simulator.fleets import parse_fleet
from corral.simulator.outcome import Held, Ran
from corral.simulator.replay import Rules, cluster_of, replay
from corral.simulator.simulation import Arrival, History, Simulation
from corral.simulator.summary import summary
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload, in_order
from tests.unit.core.builders import node
from tests.unit.core.recount import check_never_oversubscribed
from tests.unit.searching import DEAR, between, pick

AT_ONCE = PreemptionRules(enabled=True, min_run_seconds=0.0)


def preempting(policy: str = "shortest", **changes: float) -> Rules:
    preemption = PreemptionRules(enabled=True, min_run_seconds=changes.get("min_run", 0.0))
    return Rules(
        policy=policy,
        preempts=True,
        preemption=preemption,
        preemption_cost=changes.get("cost", 0.0),
        ordering=OrderingRules(ageing=0.001, unknown_seconds=changes.get("unknown", 86_400.0)),
    )


def workload(*jobs: TraceJob, fleet: str = "1x4", limits: TimeLimits = TimeLimits.KNOWN) -> Workload:
    return Workload(parse_fleet(fleet), in_order(jobs), Counter(), time_limits=limits)


def job(name: str, at: float, seconds: float, gpus: int = 4, user: str = "ann", group: str = "") -> TraceJob:
    return TraceJob(name=name, user=user, group=group, submitted_at=at, run_seconds=seconds, gpus=gpus)


def ran(work: Workload, rules: Rules) -> dict[str, Ran]:
    found: dict[str, Ran] = {}
    replay(
        work, rules, on_detail=lambda event: found.update({event.job.name: event}) if isinstance(event, Ran) else None
    )
    return found


def test_a_short_job_interrupts_a_long_one_which_goes_on_where_it_was() -> None:
    work = workload(job("long", 0, 1000), job("short", 100, 50))
    found = ran(work, preempting())
    assert (found["short"].started_at, found["short"].ended_at) == (100, 150)
    assert (found["long"].started_at, found["long"].ended_at) == (0, 1050)
    assert found["long"].preemptions == 1
    assert found["long"].wait_seconds == pytest.approx(50)
    assert found["long"].lost_gpu_seconds == 0


def test_the_cost_of_a_preemption_is_paid_with_the_next_gpus() -> None:
    work = workload(job("long", 0, 1000), job("short", 100, 50, user="bob", group="vision"))
    outcome = replay(work, preempting(cost=60))
    told = summary(preempting(cost=60), outcome)
    assert outcome.makespan_seconds == 1110
    assert outcome.lost_gpu_seconds == pytest.approx(60 * 4)
    assert told["users"]["preemptions"] == {"ann": 1}
    assert told["users"]["lost_gpu_hours"] == pytest.approx({"ann": 240 / 3600})
    assert told["groups"]["preemptions"] == {"": 1}
    assert outcome.cut_jobs == 0, "its time limit does not count what the preemption costs"


def test_nobody_is_interrupted_before_the_least_run_time() -> None:
    work = workload(job("long", 0, 1000), job("short", 100, 50))
    found = ran(work, preempting(min_run=400))
    assert found["short"].started_at == 400, "time alone brings it to its turn"
    assert found["long"].ended_at == 1050


def test_fair_share_preempts_nobody() -> None:
    work = workload(job("long", 0, 1000), job("short", 100, 50))
    assert replay(work, preempting("fair-share")).preemptions == 0


def test_of_what_nobody_knows_anything_the_fresh_go_before_those_who_have_run_long() -> None:
    work = workload(job("old", 0, 50_000), job("new", 4_000, 300), limits=TimeLimits.NONE)
    found = ran(work, preempting(unknown=600))
    assert found["new"].ended_at < 10_000
    assert found["old"].preemptions >= 1
    assert found["old"].ended_at == pytest.approx(50_300)


def cluster(rules: PreemptionRules = AT_ONCE) -> ClusterSnapshot:
    changes: list[Change] = [
        PutRules(limits=Limits(), score_time_constant=DEFAULT_TIME_CONSTANT, preemption=rules),
        PutQueue(queue=Queue(name="default", policy="priority", preempts=True)),
        PutNode(node=node("n0", gpus=4)),
    ]
    return ClusterSnapshot(changes)


def waiting(number: int, at: float, priority: int, *, grace: float = 0.0) -> Job:
    return Job(
        id=f"j-{number}",
        name=f"job-{number}",
        user="ann",
        request=Request(gpus=4),
        priority=priority,
        created_at=at,
        grace_seconds=grace,
    )


def test_a_job_that_does_not_save_begins_anew_and_what_it_did_is_lost() -> None:
    arrivals = [
        Arrival(job=waiting(1, 0, 9), run_seconds=1000, saves=False),
        Arrival(job=waiting(2, 100, 1), run_seconds=50),
    ]
    history = History()
    simulation = Simulation(snapshot=cluster(), arrivals=arrivals, watcher=history)
    steps = list(simulation)
    assert [one.job_id for step in steps for one in step.plan.preemptions] == ["j-1"]
    assert simulation.finished["j-1"].ended_at == 1150
    assert history.lost == {"j-1": 400.0}


def test_saving_takes_its_time_at_most_the_grace_and_the_gpus_are_held_meanwhile() -> None:
    arrivals = [
        Arrival(job=waiting(1, 0, 9, grace=30.0), run_seconds=1000),
        Arrival(job=waiting(2, 100, 1), run_seconds=50),
    ]
    history = History()
    simulation = Simulation(snapshot=cluster(), arrivals=arrivals, save_seconds=10.0, watcher=history)
    list(simulation)
    assert simulation.finished["j-2"].started_at == 110
    assert simulation.finished["j-1"].ended_at == 1060
    assert history.lost == {"j-1": 40.0}
    assert [(job_id, since, until) for job_id, since, until, _ in simulation.allocations] == [
        ("j-1", 0, 110),
        ("j-2", 110, 160),
        ("j-1", 160, 1060),
    ]


def test_an_elastic_job_that_is_preempted_has_its_work_left() -> None:
    elastic = replace(waiting(1, 0, 9), request=Request(gpus=2), elastic=Elastic(min_gpus=2, max_gpus=4))
    arrivals = [
        Arrival(job=elastic, run_seconds=1000),
        Arrival(job=waiting(2, 100, 1), run_seconds=50),
    ]
    history = History()
    simulation = Simulation(snapshot=cluster(), arrivals=arrivals, watcher=history)
    list(simulation)
    worked = sum(
        (until - since) * allocation.total_gpu_milli / WHOLE
        for job_id, since, until, allocation in simulation.allocations
        if job_id == "j-1"
    )
    assert simulation.finished.keys() == {"j-1", "j-2"}
    assert worked == pytest.approx(2000 + history.lost.get("j-1", 0.0))


# ---------------------------------------------------------------- properties


@st.composite
def jobs(draw: st.DrawFn) -> list[TraceJob]:
    return in_order(
        TraceJob(
            name=f"job-{number}",
            user=draw(pick("ann", "bob", "eve")),
            submitted_at=float(draw(between(0, 60))),
            run_seconds=float(draw(pick(1, 7, 30, 100, 400))),
            gpus=draw(pick(1, 2, 3, 4, 8)),
            priority=draw(between(0, 3)),
        )
        for number in range(draw(between(1, 14)))
    )


chosen = st.builds(
    Rules,
    policy=st.sampled_from(["priority", "shortest", "weighted"]),
    preempts=st.just(True),
    preemption=st.builds(
        PreemptionRules,
        enabled=st.just(True),
        min_run_seconds=st.sampled_from([0.0, 5.0, 60.0]),
        margin=st.sampled_from([0.0, 0.3]),
        moves=st.booleans(),
    ),
    preemption_cost=st.sampled_from([0.0, 3.0, 60.0]),
    ordering=st.builds(
        OrderingRules,
        ageing=st.sampled_from([0.001, 1.0]),
        size_power=st.sampled_from([0.5, 1.0, 1.5]),
        unknown_seconds=st.sampled_from([10.0, 86_400.0]),
    ),
)


@DEAR
@given(jobs(), chosen, st.sampled_from([TimeLimits.KNOWN, TimeLimits.NONE]))
def test_gpu_time_is_work_or_lost_and_everybody_ends(jobs: list[TraceJob], rules: Rules, limits: TimeLimits) -> None:
    work = Workload(parse_fleet("2x4"), jobs, Counter(), time_limits=limits)
    over, held = list[Ran](), list[Held]()
    outcome = replay(
        work, rules, on_detail=lambda event: over.append(event) if isinstance(event, Ran) else held.append(event)
    )
    assert outcome.ended_jobs == len(work.jobs)
    assert outcome.unfinished_jobs == outcome.cut_jobs == 0
    asked = {f"j-{number}": (one, request) for number, (one, request) in enumerate(work.jobs, start=1)}
    needed = math.fsum(one.run_seconds * request.total_gpu_milli / WHOLE for one, request in asked.values())
    assert outcome.gpu_seconds == pytest.approx(needed + outcome.lost_gpu_seconds)
    check_never_oversubscribed(work.nodes, [(one.job.id, one.since, one.until, one.allocation) for one in held])
    _check_jobs(over, held, rules, outcome.preemptions)


def _check_jobs(over: list[Ran], held: list[Held], rules: Rules, preemptions: int) -> None:
    """Each job was interrupted as often as it came back, never early, and lost what its restarts cost and no more."""
    by_job: dict[str, list[Held]] = defaultdict(list)
    for time_held in held:
        by_job[time_held.job.id].append(time_held)
    assert sum(one.preemptions for one in over) == preemptions
    for one in over:
        attempts = sorted(by_job[one.job.id], key=lambda item: item.since)
        # One that is moved holds both places for a moment.
        attempts = [held for held in attempts if len(held.allocation.grants) == one.job.request.nodes]
        assert len(attempts) == one.preemptions + one.moves + 1
        for before, after in pairwise(attempts):
            assert before.until - before.since >= rules.preemption.min_run_seconds
            assert after.since >= before.until
        gpus = one.job.request.total_gpu_milli / WHOLE
        assert -1e-6 <= one.lost_gpu_seconds <= (one.preemptions + one.moves) * rules.preemption_cost * gpus + 1e-6
        assert one.wait_seconds == pytest.approx(one.completion_seconds - sum(a.until - a.since for a in attempts))


@DEAR
@given(jobs(), chosen)
def test_a_run_that_preempts_can_be_repeated(jobs: list[TraceJob], rules: Rules) -> None:
    work = Workload(parse_fleet("2x4"), jobs, Counter(), time_limits=TimeLimits.KNOWN)
    assert summary(rules, replay(work, rules)) == summary(rules, replay(work, rules))


def test_a_job_that_waits_again_is_expected_to_need_the_rest() -> None:
    work = workload(job("long", 0, 1000), job("short", 100, 50))
    simulation = Simulation(
        snapshot=ClusterSnapshot(cluster_of(work.nodes, preempting())),
        arrivals=work.arrivals(),
        in_order=True,
        preemption_cost=0.0,
    )
    seen = [
        one.predicted.p50_seconds
        for step in simulation
        for one in simulation.snapshot.jobs.values()
        if one.name == "long" and one.state is JobState.QUEUED and one.predicted and step.at >= 100
    ]
    assert seen
    assert all(seconds == pytest.approx(900) for seconds in seen)
