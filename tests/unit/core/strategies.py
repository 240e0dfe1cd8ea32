"""Random clusters and histories for property tests: small enough to shrink well, mixed enough to hit corners."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from corral.core.changes import Change, PutNode, PutQueue, PutQuota, PutRules
from corral.core.installation import Limits
from corral.core.model import (
    WHOLE,
    Blocking,
    Gpu,
    GpuHealth,
    Job,
    JobKind,
    Node,
    NodeState,
    Prediction,
    Queue,
    Quota,
    Request,
)
from corral.core.snapshot import ClusterSnapshot
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.searching import between, pick

GIB = 1 << 30
MODELS = ("A10", "H100")
USERS = ("ann", "bob", "eve")
ZONES = (("zone", "a"), ("zone", "b"))
RACKS = ((), (), (("rack", "r1"),), (("rack", "r2"),))
POLICIES = ("fcfs", "priority", "fair-share", "shortest", "weighted")
PLACEMENTS = ("fragmentation", "pack", "spread", "round-robin", "least-loaded")
PREDICTIONS = (
    Prediction(p50_seconds=4.0, p90_seconds=9.0, samples=3),
    Prediction(p50_seconds=30.0, p90_seconds=30.0, samples=1),
)
#: a short time constant, so that scores move within a short history
TIME_CONSTANT = 60.0

zones = st.sets(st.sampled_from(ZONES), max_size=1)
#: mostly the first one
node_states = st.sampled_from([NodeState.READY] * 6 + [NodeState.CORDONED, NodeState.DRAINING, NodeState.DOWN])
gpu_healths = st.sampled_from([GpuHealth.HEALTHY] * 8 + [GpuHealth.SUSPECT, GpuHealth.FAILED])


@dataclass(frozen=True, kw_only=True)
class History:
    """A cluster and what arrives at it."""

    cluster: tuple[Change, ...]
    arrivals: tuple[Arrival, ...]

    def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot(self.cluster)

    def simulation(self) -> Simulation:
        return Simulation(snapshot=self.snapshot(), arrivals=self.arrivals)


@st.composite
def nodes(draw: st.DrawFn, number: int, *, always_usable: bool = False, one_pool: bool = False) -> Node:
    model = draw(pick(*MODELS))
    links = draw(pick("", "", "aabb", "abab", "aaab"))
    gpus = tuple(
        Gpu(
            id=f"n{number}/{index}",
            index=index,
            model=draw(pick(model, model, model, *MODELS)),
            memory_bytes=24 * GIB,
            health=GpuHealth.HEALTHY if always_usable else draw(gpu_healths),
            pool="default" if one_pool else draw(pick(*["default"] * 5, "night")),
            link_group=links[index] if links else "",
        )
        for index in range(draw(pick(4, 2, 4, 1, 0)))
    )
    return Node(
        id=f"n{number}",
        state=NodeState.READY if always_usable else draw(node_states),
        cpu_milli=draw(pick(2000, 8000)),
        memory_bytes=draw(pick(4, 16)) * GIB,
        gpus=gpus,
        labels=tuple(sorted((*draw(zones), *draw(pick(*RACKS))))),
        load=draw(pick(None, 0.2, 0.9)),
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    shape = draw(pick("whole", "whole", "share", "cpu"))
    is_gang = draw(between(0, 4)) == 0
    return Request(
        nodes=draw(between(2, 3)) if is_gang else 1,
        gpus=draw(pick(1, 2, 1, 4)) if shape == "whole" else 0,
        gpu_milli=draw(pick(100, 250, 400, 500, 999)) if shape == "share" else 0,
        cpu_milli=draw(pick(500, 2000)) if shape == "cpu" else draw(pick(0, 0, 0, 1000)),
        memory_bytes=draw(pick(0, 0, 0, 1, 3)) * GIB,
        models=draw(pick((), (), ("A10",), ("H100",), MODELS)) if shape != "cpu" else (),
        labels=draw(pick(*[()] * 6, (ZONES[0],))),
    )


@st.composite
def jobs(draw: st.DrawFn, serial: int, queue_names: tuple[str, ...]) -> Job:
    request = draw(requests())
    created_at = float(draw(between(0, 15)))
    return Job(
        id=f"j-{serial}",
        name=f"job-{serial}",
        user=draw(pick(*USERS)),
        kind=JobKind.DISTRIBUTED if request.is_gang else draw(pick(JobKind.TRAINING, JobKind.WORKBENCH)),
        queue=draw(pick(*queue_names)),
        request=request,
        priority=draw(pick(5, 5, 1, 9)),
        created_at=created_at,
        pinned_at=draw(pick(*[None] * 6, created_at, 20.0)),
        user_order=draw(pick(0, 0, 0, -1, 2)),
        time_limit_seconds=draw(pick(None, 5.0, 20.0, 50.0)),
        grace_seconds=draw(pick(0.0, 3.0)),
        predicted=draw(pick(None, None, *PREDICTIONS)),
    )


@st.composite
def arrivals(draw: st.DrawFn, queue_names: tuple[str, ...] = ("default",), most: int = 12) -> tuple[Arrival, ...]:
    count = draw(pick(most, most, most // 2, 2))
    return tuple(
        Arrival(job=draw(jobs(serial, queue_names)), run_seconds=float(draw(between(3, 40))))
        for serial in range(1, count + 1)
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Change, ...]:
    """Nodes of all sorts, a default queue, a strict one and one of another pool, limits and quotas."""
    changes: list[Change] = [
        PutRules(limits=draw(limits()), score_time_constant=TIME_CONSTANT),
        *(PutNode(node=draw(nodes(number))) for number in range(draw(pick(4, 3, 2, 1)))),
        *(PutQueue(queue=queue) for queue in draw(queues())),
    ]
    for user in draw(pick((), (), USERS[:1], USERS[:2])):
        quota = Quota(
            gpu_milli=draw(pick(None, 500, 2 * WHOLE)),
            cpu_milli=draw(pick(None, 2500)),
            memory_bytes=draw(pick(None, 3 * GIB)),
        )
        changes.append(PutQuota(user=user, kind=draw(pick(*list(JobKind)[:3])), quota=quota))
    return tuple(changes)


@st.composite
def queues(draw: st.DrawFn) -> list[Queue]:
    few_gpus = st.sampled_from([None] * 5 + [3])
    made = [
        Queue(name="default", pool="default"),
        Queue(name="strict", pool="default", blocking=Blocking.STRICT),
        Queue(name="night", pool="night"),
    ]
    return [
        replace(
            queue,
            policy=draw(pick(*POLICIES)),
            placement=draw(pick(*PLACEMENTS)),
            max_gpus=draw(few_gpus),
        )
        for queue in made
    ]


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    return Limits(
        max_gpus_per_user=draw(pick(*[None] * 5, 3)),
        max_gpus_per_job=draw(pick(*[None] * 5, 3)),
        max_total_gpus=draw(pick(*[None] * 5, 6)),
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    return History(
        cluster=draw(clusters()),
        arrivals=draw(arrivals(("default", "default", "strict", "night"))),
    )
