"""Invariants of elastic jobs in every history: their size, no double allocation, few resizes, and no long waits of
others because of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from corral.control.live.journal import JournalWriter, replay
from corral.control.live.state import State
from corral.control.system.policies import Policies
from corral.core.model import WHOLE, Blocking, Elastic, Job, JobKind, JobState, Queue, Request
from corral.core.people.quota import Quota
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import ResizeCause
from corral.core.snapshot.changes import Change, PutLastNode, PutNode, PutQueue, PutQuota, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, ScalingRules
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node
from tests.unit.core.recount import check_never_oversubscribed, dump_snapshot, free_on
from tests.unit.core.strategies import History
from tests.unit.searching import DEAR, between, every, pick

INTERVAL = 200.0
SAVE_SECONDS = 8.0
GRACE_SECONDS = 10.0
RULES = ScalingRules(interval_seconds=INTERVAL)


def simulate(history: History) -> Simulation:
    return Simulation(
        snapshot=history.snapshot(),
        arrivals=history.arrivals,
        save_seconds=SAVE_SECONDS,
        restart_seconds=3.0,
        measure_seconds=50.0,
    )


#: how much of its GPUs a job uses, by their number
USES = every(**{f"with {gpus}": (0.95, 0.95, 0.85, 0.5, 0.2, 0.05) for gpus in range(9)})
STRETCHY = every(
    user=("ann", "bob"),
    time_limit_seconds=(None, None, 900.0, 4000.0),
    least=(1, 2, 3, 4),
    more=range(7),
    saves=(True, True, True, False),
    restarts=(True, False),
    nodes=(1, 1, 1, 2),
)
RIGID = every(
    user=("ann", "bob", "eve"),
    time_limit_seconds=(None, 300.0),
    nodes=(1, 1, 1, 1, 1, 1, 2),
    gpus=(1, 2, 3, 5),
    gpu_milli=(0, 0, 0, 400),
)


@st.composite
def elastic_jobs(draw: st.DrawFn, serial: int, *, until: int = 100) -> Arrival:
    drawn = draw(STRETCHY)
    least, more = drawn.pop("least"), drawn.pop("more")
    saves, restarts, nodes = drawn.pop("saves"), drawn.pop("restarts"), drawn.pop("nodes")
    uses = [*draw(USES).values()]
    job = Job(
        id=f"j-{serial}",
        name=f"job-{serial}",
        kind=JobKind.DISTRIBUTED if nodes > 1 else JobKind.TRAINING,
        request=Request(nodes=nodes, gpus=least),
        elastic=Elastic(min_gpus=least, max_gpus=least + more),
        restart_unsaved=restarts,
        created_at=float(draw(between(0, until))),
        grace_seconds=GRACE_SECONDS,
        **drawn,
    )
    return Arrival(
        job=job,
        run_seconds=float(draw(between(100, 6000))),
        utilization=lambda gpus: uses[min(gpus, 8)],
        saves=saves,
    )


def on_one_node(job: Job) -> Job:
    return replace(job, kind=JobKind.TRAINING, request=replace(job.request, nodes=1))


@st.composite
def rigid_jobs(draw: st.DrawFn, serial: int, *, until: int = 2000) -> Arrival:
    drawn = draw(RIGID)
    nodes, gpus, share = drawn.pop("nodes"), drawn.pop("gpus"), drawn.pop("gpu_milli")
    job = Job(
        id=f"j-{serial}",
        name=f"job-{serial}",
        kind=JobKind.DISTRIBUTED if nodes > 1 else JobKind.TRAINING,
        request=Request(nodes=nodes, gpu_milli=share, gpus=0 if share else gpus),
        created_at=float(draw(between(0, until))),
        grace_seconds=GRACE_SECONDS,
        **drawn,
    )
    return Arrival(job=job, run_seconds=float(draw(between(1, 300))))


@st.composite
def mixed(draw: st.DrawFn) -> History:
    """One or two nodes, elastic jobs and others, and sometimes limits."""
    limits = Limits(max_gpus_per_user=draw(pick(None, None, 6)), max_total_gpus=draw(pick(None, None, 9)))
    queue = Queue(
        name="default",
        policy=draw(pick("fcfs", "fair-share")),
        blocking=draw(pick(*Blocking)),
        placement=draw(pick("pack", "spread")),
        max_gpus=draw(pick(None, None, 7)),
    )
    cluster: list[Change] = [
        PutRules(limits=limits, score_time_constant=600.0, scaling=RULES),
        PutQueue(queue=queue),
        *(PutNode(node=node(f"n{n}", gpus=draw(pick(8, 4, 6)))) for n in range(draw(between(1, 2)))),
    ]
    if draw(pick(False, True)):
        quota = Quota(gpu_milli=draw(pick(4, 7)) * WHOLE)
        cluster.append(PutQuota(user="ann", kind=JobKind.TRAINING, quota=quota))
    count = draw(between(1, 3))
    arrivals = [draw(elastic_jobs(serial)) for serial in range(1, count + 1)]
    arrivals += [draw(rigid_jobs(serial)) for serial in range(count + 1, count + 1 + draw(between(0, 10)))]
    return History(cluster=tuple(cluster), arrivals=tuple(arrivals))


@DEAR
@given(mixed())
def test_sizes_stay_within_bounds_and_nothing_is_held_twice(history: History) -> None:
    simulation = simulate(history)
    nodes = dict(simulation.snapshot.nodes)
    bounds = {arrival.job.id: arrival.job.elastic for arrival in history.arrivals}
    for step in simulation:
        snapshot = simulation.snapshot
        expected = free_on(snapshot)
        for slot in snapshot.fleet.slots:
            assert (slot.free_cpu_milli, slot.free_memory_bytes, slot.free_milli) == expected[slot.node.id]
        for job in snapshot.jobs.values():
            if job.elastic is not None and job.allocation is not None:
                assert {len(grant.gpus) for grant in job.allocation.grants} == {job.request.gpus}
        _check_limits(snapshot)
        names = [resize.job_id for resize in step.plan.resizes]
        assert len(set(names)) == len(names)
        assert step.plan.wake_at is None or step.plan.wake_at > step.at
    check_never_oversubscribed(nodes.values(), simulation.allocations)
    for job_id, _, _, allocation in simulation.allocations:
        elastic = bounds[job_id]
        if elastic is not None:
            assert all(elastic.min_gpus <= len(grant.gpus) <= elastic.max_gpus for grant in allocation.grants)
    assert simulation.snapshot.elastic == {
        job.id for job in simulation.snapshot.jobs.values() if job.elastic and job.state is not JobState.QUEUED
    }


def _check_limits(snapshot: ClusterSnapshot) -> None:
    by_user: dict[str, int] = defaultdict(int)
    for job in snapshot.jobs.values():
        by_user[job.user] += job.allocation.total_gpu_milli if job.allocation else 0
    limits, queue = snapshot.limits, snapshot.queues["default"]
    for held, most in (
        (sum(by_user.values()), limits.max_total_gpus),
        (sum(by_user.values()), queue.max_gpus),
        *((held, limits.max_gpus_per_user) for held in by_user.values()),
    ):
        assert most is None or held <= most * WHOLE
    quota = snapshot.quotas.get(("ann", JobKind.TRAINING))
    if quota is not None and quota.gpu_milli is not None:
        assert snapshot.held.of_kind("ann", JobKind.TRAINING).gpu_milli <= quota.gpu_milli


@DEAR
@given(mixed(), st.integers(0, 2**16))
def test_equal_snapshots_give_equal_plans_and_planning_changes_nothing(history: History, seed: int) -> None:
    random = Random(seed)
    simulation = simulate(history)
    for step in simulation:
        before = dump_snapshot(simulation.snapshot)
        assert schedule(simulation.snapshot, step.at) == step.plan
        assert dump_snapshot(simulation.snapshot) == before
        contents = list(simulation.snapshot.contents())
        random.shuffle(contents)
        assert schedule(ClusterSnapshot(contents), step.at) == step.plan


@DEAR
@given(mixed())
def test_the_journal_replays(history: History) -> None:
    state, writer = State(Policies()), JournalWriter()
    state.apply([*history.cluster, PutLastNode(id="")])

    def observe(changes: list[Change]) -> None:
        state.note(changes)

    simulation = replace(simulate(history), snapshot=state.snapshot, observer=observe)
    cycles = [writer.entry(state, step.plan) for step in simulation if step.plan.starts or step.plan.resizes]
    replayed = list(replay(cycles))
    assert len(replayed) == len(cycles)
    assert all(item.decided == item.recorded for item in replayed)


@DEAR
@given(mixed())
def test_between_two_resizes_that_no_other_job_needs_there_is_time(history: History) -> None:
    simulation = simulate(history)
    for _ in simulation:
        pass
    own: dict[str, list[float]] = defaultdict(list)
    for at, resize in simulation.resizes:
        if resize.cause is not ResizeCause.OTHERS:
            own[resize.job_id].append(at)
    for times in own.values():
        assert all(later - earlier >= INTERVAL for earlier, later in pairwise(times))


@DEAR
@given(elastic_jobs(1, until=0), st.data())
def test_under_a_constant_load_it_settles(arrival: Arrival, data: st.DataObject) -> None:
    """Alone on a node for very long: however its use depends on its size, the more time, the rarer the resizes."""
    gpus = data.draw(between(4, 8))
    job = on_one_node(replace(arrival.job, time_limit_seconds=None))
    days = data.draw(pick(1, 4))
    run = days * 86_400.0 * job.request.gpus
    cluster = (
        PutRules(limits=Limits(), score_time_constant=600.0, scaling=RULES),
        PutQueue(queue=Queue(name="default")),
        PutNode(node=node("n1", gpus=gpus)),
    )
    history = History(cluster=cluster, arrivals=(replace(arrival, job=job, run_seconds=run),))
    simulation = replace(simulate(history), measure_seconds=600.0)
    for _ in simulation:
        pass
    # Each time it is found not to use what it has, that is remembered for twice as long.
    episodes = 2 + math.log2(max(2.0, run * 8 / (6 * INTERVAL)))
    assert len(simulation.resizes) <= episodes * (1 + math.log2(8))


@DEAR
@given(st.data())
def test_no_job_waits_longer_for_it_than_one_grace_time(data: st.DataObject) -> None:
    """Against the same history with a job that always has its minimum: everybody else starts at most a grace time
    later."""
    arrival = data.draw(elastic_jobs(1, until=0))
    least = arrival.job.request.gpus
    job = on_one_node(replace(arrival.job, time_limit_seconds=None, user="owner"))
    always = replace(arrival, job=job, run_seconds=10.0**7)
    others = []
    for serial in range(2, 2 + data.draw(between(1, 8))):
        other = data.draw(rigid_jobs(serial, until=1000))
        request = replace(other.job.request, nodes=1)
        kept = replace(other.job, request=request, kind=JobKind.TRAINING, user="ann", time_limit_seconds=None)
        others.append(replace(other, job=kept))
    cluster = (
        PutRules(limits=Limits(), score_time_constant=600.0, scaling=RULES),
        PutQueue(queue=Queue(name="default", policy="fcfs", blocking=Blocking.STRICT)),
        PutNode(node=node("n1", gpus=max(8, least + 5))),
    )
    rigid = replace(always, job=replace(job, elastic=None))
    undisturbed = _starts(History(cluster=cluster, arrivals=(rigid, *others)))
    for job_id, at in _starts(History(cluster=cluster, arrivals=(always, *others))).items():
        assert at <= undisturbed[job_id] + GRACE_SECONDS


def _starts(history: History) -> dict[str, float]:
    found = {}
    for step in simulate(history):
        for start in step.plan.starts:
            found[start.job_id] = step.at
        if len(found) == len(history.arrivals):
            break
    return found
