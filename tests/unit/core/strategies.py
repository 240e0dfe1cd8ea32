"""Random clusters and histories for property tests: small enough to shrink well, mixed enough to hit corners."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from corral.core.model import WHOLE, Blocking, Gpu, GpuHealth, Job, JobKind, Node, NodeState, Prediction, Queue, Request
from corral.core.people.quota import Quota
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutQuota, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.searching import between, each, pick, seconds

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

#: half of all nodes have no zone, and half of them no rack
LABELS = tuple(tuple(sorted((*rack, *zone))) for rack in RACKS for zone in ((), (), ZONES[:1], ZONES[1:]))
#: mostly the first one
NODE_STATES = (*[NodeState.READY] * 6, NodeState.CORDONED, NodeState.DRAINING, NodeState.DOWN)
GPU_HEALTHS = (*[GpuHealth.HEALTHY] * 8, GpuHealth.SUSPECT, GpuHealth.FAILED)


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
    drawn = each(draw, model=MODELS, links=("", "", "aabb", "abab", "aaab"), gpus=(4, 2, 4, 1, 0))
    model, links = drawn["model"], drawn["links"]
    gpus = tuple(
        Gpu(
            id=f"n{number}/{index}",
            index=index,
            memory_bytes=24 * GIB,
            link_group=links[index] if links else "",
            **each(
                draw,
                model=(model, model, model, *MODELS),
                health=GPU_HEALTHS[:1] if always_usable else GPU_HEALTHS,
                pool=("default",) if one_pool else (*["default"] * 5, "night"),
            ),
        )
        for index in range(drawn["gpus"])
    )
    return Node(
        id=f"n{number}",
        gpus=gpus,
        **each(
            draw,
            state=NODE_STATES[:1] if always_usable else NODE_STATES,
            cpu_milli=(2000, 8000),
            memory_bytes=(4 * GIB, 16 * GIB),
            labels=LABELS,
            load=(None, 0.2, 0.9),
        ),
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    return _request(draw)


def _request(draw: st.DrawFn) -> Request:
    drawn = each(
        draw,
        shape=("whole", "whole", "share", "cpu"),
        nodes=(1, 1, 1, 1, 1, 1, 1, 1, 2, 3),
        gpus=(1, 2, 1, 4),
        gpu_milli=(100, 250, 400, 500, 999),
        cpu_milli=(0, 0, 0, 1000),
        cpu_milli_alone=(500, 2000),
        memory_bytes=(0, 0, 0, GIB, 3 * GIB),
        models=((), (), ("A10",), ("H100",), MODELS),
        labels=(*[()] * 6, (ZONES[0],)),
    )
    shape = drawn["shape"]
    return Request(
        nodes=drawn["nodes"],
        gpus=drawn["gpus"] if shape == "whole" else 0,
        gpu_milli=drawn["gpu_milli"] if shape == "share" else 0,
        cpu_milli=drawn["cpu_milli_alone" if shape == "cpu" else "cpu_milli"],
        memory_bytes=drawn["memory_bytes"],
        models=drawn["models"] if shape != "cpu" else (),
        labels=drawn["labels"],
    )


@st.composite
def jobs(draw: st.DrawFn, serial: int, queue_names: tuple[str, ...]) -> Job:
    return _job(draw, serial, queue_names)


def _job(draw: st.DrawFn, serial: int, queue_names: tuple[str, ...]) -> Job:
    request = _request(draw)
    drawn = each(
        draw,
        user=USERS,
        kind=(JobKind.DISTRIBUTED,) if request.is_gang else (JobKind.TRAINING, JobKind.WORKBENCH, JobKind.PRESET),
        queue=queue_names,
        priority=(5, 5, 1, 9),
        created_at=seconds(0, 15),
        pinned_at=(*[None] * 6, "when it was made", 20.0),
        user_order=(0, 0, 0, -1, 2),
        time_limit_seconds=(None, 5.0, 20.0, 50.0),
        grace_seconds=(0.0, 3.0),
        predicted=(None, None, *PREDICTIONS),
    )
    if drawn["pinned_at"] == "when it was made":
        drawn["pinned_at"] = drawn["created_at"]
    return Job(id=f"j-{serial}", name=f"job-{serial}", request=request, **drawn)


@st.composite
def arrivals(draw: st.DrawFn, queue_names: tuple[str, ...] = ("default",), most: int = 12) -> tuple[Arrival, ...]:
    count = draw(pick(most, most, most // 2, 2))
    return tuple(
        Arrival(job=_job(draw, serial, queue_names), run_seconds=float(draw(between(3, 40))))
        for serial in range(1, count + 1)
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Change, ...]:
    """Nodes of all sorts, a default queue, a strict one and one of another pool, limits and quotas."""
    changes: list[Change] = [
        PutRules(limits=_limits(draw), score_time_constant=TIME_CONSTANT),
        *(PutNode(node=draw(nodes(number))) for number in range(draw(pick(4, 3, 2, 1)))),
        *(PutQueue(queue=queue) for queue in _queues(draw)),
    ]
    for user in draw(pick((), (), USERS[:1], USERS[:2])):
        kind = draw(pick(*JobKind))
        quota = each(draw, gpu_milli=(None, 500, 2 * WHOLE), cpu_milli=(None, 2500), memory_bytes=(None, 3 * GIB))
        changes.append(PutQuota(user=user, kind=kind, quota=Quota(**quota)))
    return tuple(changes)


def _queues(draw: st.DrawFn) -> list[Queue]:
    made = [
        Queue(name="default", pool="default"),
        Queue(name="strict", pool="default", blocking=Blocking.STRICT),
        Queue(name="night", pool="night"),
    ]
    return [
        replace(queue, **each(draw, policy=POLICIES, placement=PLACEMENTS, max_gpus=(*[None] * 5, 3))) for queue in made
    ]


def _limits(draw: st.DrawFn) -> Limits:
    few = (*[None] * 5, 3)
    return Limits(**each(draw, max_gpus_per_user=few, max_gpus_per_job=few, max_total_gpus=(*[None] * 5, 6)))


@st.composite
def histories(draw: st.DrawFn) -> History:
    return History(
        cluster=draw(clusters()),
        arrivals=draw(arrivals(("default", "default", "strict", "night"))),
    )
