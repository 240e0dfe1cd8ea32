"""The promise to the first job that waits: it never moves later, and it is kept."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Blocking, Job, JobKind, Queue, Request
from corral.core.scheduling.explain.reasons import line_order
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT, ClusterSnapshot
from corral.core.snapshot.installation import BackfillRules, Limits
from corral.core.snapshot.waiting_lines import LineKey, line_of
from corral.simulator.simulation import Arrival, Simulation, Step
from tests.unit.core.builders import node
from tests.unit.core.strategies import GIB, PLACEMENTS, History, nodes
from tests.unit.searching import DEAR, between, each, every, pick, seconds

policies = st.sampled_from(["fcfs", "priority"])

COMERS = every(
    user=("ann", "bob"),
    priority=(5, 5, 1),
    created_at=seconds(0, 20),
    time_limit_seconds=(5.0, 20.0, 50.0, None),
    grace_seconds=(0.0, 2.0),
    runs=seconds(1, 60),
)


@st.composite
def contended(draw: st.DrawFn, gangs: bool, one_line: bool) -> History:
    """One pool, few GPUs, many jobs. Without limits, pins or scores nothing but time, arrivals and ends happens."""
    queue = Queue(
        name="default",
        policy=draw(policies) if one_line else "fcfs",
        blocking=draw(pick(*Blocking)),
        placement=draw(pick(*PLACEMENTS)),
    )
    count = draw(between(1, 3))
    machines = [draw(nodes(number, always_usable=True, one_pool=True)) for number in range(count)]
    arrivals = []
    for serial in range(1, draw(pick(20, 12, 6)) + 1):
        asked = each(
            draw,
            nodes=(1, 1) if not gangs and one_line else (2, 3) if one_line else (1, 1, 2, 3),
            gpu_milli=(0, 0, 0, 400, 700),
            gpus=(1, 2, 1, 4),
            cpu_milli=(0, 0, 1000),
            memory_bytes=(0, 0, 2 * GIB),
        )
        if asked["gpu_milli"]:
            asked["gpus"] = 0
        request = Request(**asked)
        kind = JobKind.DISTRIBUTED if request.is_gang else JobKind.TRAINING
        drawn = draw(COMERS)
        runs = drawn.pop("runs")
        job = Job(id=f"j-{serial}", name=f"job-{serial}", kind=kind, request=request, **drawn)
        arrivals.append(Arrival(job=job, run_seconds=runs))
    rules = PutRules(
        limits=Limits(),
        score_time_constant=DEFAULT_TIME_CONSTANT,
        backfill=BackfillRules(slack=draw(pick(0.0, 0.5, 3.0))),
    )
    return History(
        cluster=(rules, *(PutNode(node=machine) for machine in machines), PutQueue(queue=queue)),
        arrivals=tuple(arrivals),
    )


def check_promises(history: History, *, first_only: bool) -> None:
    """Follow what each first job of a line was promised. With several lines only the oldest promise is firm."""
    promised: dict[LineKey, tuple[str, float]] = {}
    simulation = history.simulation()
    for step in simulation:
        firm = step.plan.planned[:1] if first_only else step.plan.planned
        starting = {start.job_id for start in step.plan.starts}
        present = {planned.line: planned for planned in firm}
        for line, (job_id, at) in promised.items():
            planned = present.get(line)
            if _passed_by_arrivals(simulation.snapshot, line, job_id, step):
                continue  # another job was the first for a while
            if job_id in starting:
                assert step.at <= at, f"{job_id} started at {step.at}, promised {at}"
            else:
                assert planned is not None, f"{job_id} has lost its promise"
                assert planned.job_id == job_id
                assert planned.at <= at, f"{job_id} was promised {at}, at {step.at} it is {planned.at}"
        # What rests on predictions moves as they turn out wrong.
        promised = {line: (one.job_id, one.at) for line, one in present.items() if one.is_known and one.is_firm}


def _passed_by_arrivals(snapshot: ClusterSnapshot, line: LineKey, job_id: str, step: Step) -> bool:
    order = [job.id for job in line_order(snapshot, line, step.at)]
    return bool(set(order[: order.index(job_id)]) & set(step.arrived))


@DEAR
@given(st.booleans().flatmap(lambda gangs: contended(gangs=gangs, one_line=True)))
def test_the_first_of_a_line_never_waits_longer_than_promised(history: History) -> None:
    check_promises(history, first_only=False)


@DEAR
@given(contended(gangs=True, one_line=False))
def test_longest_waiting_job_of_two_lines_has_a_firm_start(history: History) -> None:
    check_promises(history, first_only=True)


def stream(count: int, every: float, run: float, limit: float | None) -> list[Arrival]:
    """Small jobs without end."""
    return [
        Arrival(
            job=Job(
                id=f"j-{serial}",
                name=f"small-{serial}",
                user="bob",
                request=Request(gpus=1),
                created_at=serial * every,
                time_limit_seconds=limit,
                grace_seconds=0.0,
            ),
            run_seconds=run,
        )
        for serial in range(1, count + 1)
    ]


@pytest.mark.parametrize("limit", [None, 40.0], ids=["no-limits", "limits"])
@pytest.mark.parametrize("blocking", list(Blocking))
@pytest.mark.parametrize("nodes_asked", [1, 3])
def test_a_stream_of_small_jobs_starves_no_job(nodes_asked: int, blocking: Blocking, limit: float | None) -> None:
    """Three nodes of four GPUs, always full of one-GPU jobs; then a job asks for whole nodes."""
    queue = Queue(name="default", policy="fcfs", blocking=blocking)
    cluster: list[Change] = [PutQueue(queue=queue), *(PutNode(node=node(f"n{n}", gpus=4)) for n in range(3))]
    big = Job(
        id="j-1000",
        name="big",
        user="ann",
        kind=JobKind.DISTRIBUTED if nodes_asked > 1 else JobKind.TRAINING,
        request=Request(nodes=nodes_asked, gpus=4),
        created_at=100.5,
    )
    arrivals = [*stream(300, 2.5, 30.0, limit), Arrival(job=big, run_seconds=10.0)]
    simulation = Simulation(snapshot=ClusterSnapshot(cluster), arrivals=arrivals)
    began = next(step.at for step in simulation if "j-1000" in {start.job_id for start in step.plan.starts})
    assert began <= 100.5 + 40.0, "as soon as what ran then has ended"


def test_a_single_job_and_a_gang_are_both_protected_in_order_of_waiting() -> None:
    queue = Queue(name="default", policy="fcfs")
    cluster: list[Change] = [PutQueue(queue=queue), *(PutNode(node=node(f"n{n}", gpus=4)) for n in range(2))]
    gang = Job(
        id="j-900", name="gang", user="ann", request=Request(nodes=2, gpus=4), created_at=50.5, time_limit_seconds=20.0
    )
    whole = Job(id="j-901", name="whole", user="eve", request=Request(gpus=4), created_at=51.5)
    arrivals = [
        *stream(300, 2.0, 16.0, 20.0),
        Arrival(job=replace(gang, grace_seconds=0.0), run_seconds=20.0),
        Arrival(job=whole, run_seconds=10.0),
    ]
    began: dict[str, float] = {}
    for step in Simulation(snapshot=ClusterSnapshot(cluster), arrivals=arrivals):
        began |= {start.job_id: step.at for start in step.plan.starts}
        if "j-900" in began and "j-901" in began:
            break
    assert began["j-900"] <= 50.5 + 20.0
    assert began["j-900"] < began["j-901"] <= 50.5 + 20.0 + 20.0


@pytest.mark.parametrize(
    ("slack", "with_gang", "starts_at"),
    [(0.0, False, 100.0), (3.0, False, 130.0), (0.5, False, 100.0), (3.0, True, 100.0)],
    ids=["none", "three times its limit", "used up before", "a gang waits"],
)
def test_jobs_behind_delay_a_single_job_as_far_as_its_slack(slack: float, with_gang: bool, starts_at: float) -> None:
    """Four GPUs, three of them in use until 100; a job of four GPUs and 40 seconds comes at 10, one of one GPU that
    runs until 130 comes at 20: it may pass if it ends before the first has waited for 120 seconds."""
    rules = PutRules(
        limits=Limits(), score_time_constant=DEFAULT_TIME_CONSTANT, backfill=BackfillRules(protected=1, slack=slack)
    )
    cluster: list[Change] = [
        rules,
        PutQueue(queue=Queue(name="default", policy="fcfs")),
        PutNode(node=node("n1", gpus=4)),
    ]
    if with_gang:
        cluster.append(PutNode(node=node("n2", gpus=4)))

    def arrival(serial: int, gpus: int, at: float, seconds: float, nodes: int = 1) -> Arrival:
        job = Job(
            id=f"j-{serial}",
            name=f"job-{serial}",
            user="ann",
            kind=JobKind.DISTRIBUTED if nodes > 1 else JobKind.TRAINING,
            request=Request(gpus=gpus, nodes=nodes),
            created_at=at,
            time_limit_seconds=seconds,
            grace_seconds=0.0,
        )
        return Arrival(job=job, run_seconds=seconds)

    arrivals = [arrival(1, 3, 0.0, 100.0), arrival(3, 4, 10.0, 40.0), arrival(4, 1, 20.0, 110.0)]
    if with_gang:
        arrivals += [arrival(2, 4, 0.0, 200.0), arrival(5, 4, 15.0, 10.0, nodes=2)]
    simulation = Simulation(snapshot=ClusterSnapshot(cluster), arrivals=arrivals)
    promised: list[float] = []
    began: dict[str, float] = {}
    for step in simulation:
        promised += [planned.at for planned in step.plan.planned if planned.job_id == "j-3"]
        began |= {start.job_id: step.at for start in step.plan.starts}
    assert promised[0] == max(100.0, 10.0 + slack * 40.0)
    assert began["j-3"] == starts_at <= promised[0]


def test_job_without_a_known_end_gives_no_planned_start() -> None:
    simulation = Simulation(
        snapshot=ClusterSnapshot([PutQueue(queue=Queue(name="default")), PutNode(node=node("n1", gpus=1))]),
        arrivals=[
            Arrival(job=Job(id="j-1", name="endless", user="ann", request=Request(gpus=1)), run_seconds=100.0),
            Arrival(
                job=Job(id="j-2", name="next", user="bob", request=Request(gpus=1), created_at=1.0), run_seconds=1.0
            ),
        ],
    )
    plans = [step.plan for step in simulation]
    assert plans[1].planned[0].at == math.inf
    assert [start.job_id for plan in plans for start in plan.starts] == ["j-1", "j-2"]


def test_the_line_of_a_job_is_where_its_promise_stands() -> None:
    simulation = Simulation(
        snapshot=ClusterSnapshot([PutQueue(queue=Queue(name="default")), PutNode(node=node("n1", gpus=1))]),
        arrivals=[
            Arrival(job=Job(id=f"j-{n}", name="same", user="ann", request=Request(gpus=1)), run_seconds=5.0)
            for n in (1, 2)
        ],
    )
    step = next(iter(simulation))
    assert step.plan.planned[0].line == line_of(simulation.snapshot.jobs["j-2"])
