"""Short ways to say which nodes, queues and jobs a story has."""

from __future__ import annotations

from typing import Any

from corral.core.model import WHOLE, Allocation, Gpu, Grant, Job, JobKind, JobState, Node, Queue, Request
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.changes import Change, PutJob, PutNode, PutQueue
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

REQUEST_FIELDS = {"nodes", "gpus", "gpu_milli", "cpu_milli", "memory_bytes", "models", "labels"}


def node(name: str, gpus: int | tuple[Gpu, ...] = 0, model: str = "A10", pool: str = "default", **values: Any) -> Node:
    devices = gpus
    if isinstance(gpus, int):
        devices = tuple(Gpu(id=f"{name}/{index}", index=index, model=model, pool=pool) for index in range(gpus))
    return Node(id=name, **{"cpu_milli": 64 * WHOLE, "memory_bytes": 1 << 40, "gpus": devices, **values})


def waiting(serial: int, user: str = "ann", **values: Any) -> Job:
    """A queued job; fields of its request and of the job itself together."""
    request = Request(**{name: values.pop(name) for name in list(values) if name in REQUEST_FIELDS})
    kind = JobKind.DISTRIBUTED if request.is_gang else JobKind.TRAINING
    since = float(values.pop("at", serial))
    base = {"kind": kind, "created_at": since, "queued_at": since, "grace_seconds": 0.0, "request": request}
    return Job(id=f"j-{serial}", name=f"job-{serial}", user=user, state=JobState.QUEUED, **{**base, **values})


def running(serial: int, on: dict[str, tuple[int, ...]], user: str = "eve", model: str = "A10", **values: Any) -> Job:
    """A running job on GPUs given by their index on each node, since time 0."""
    cpu_milli, memory_bytes = values.pop("cpu_milli", 0), values.pop("memory_bytes", 0)
    gpu_milli = values.pop("gpu_milli", 0)
    grants = tuple(
        Grant(
            node=name,
            gpus=tuple(f"{name}/{index}" for index in indexes),
            gpu_milli=gpu_milli or WHOLE,
            cpu_milli=cpu_milli,
            memory_bytes=memory_bytes,
        )
        for name, indexes in on.items()
    )
    has_gpus = any(grant.gpus for grant in grants)
    request = Request(
        nodes=len(grants),
        gpus=0 if gpu_milli else len(grants[0].gpus),
        gpu_milli=gpu_milli,
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
    )
    base: dict[str, Any] = {
        "created_at": 0.0,
        "queued_at": 0.0,
        "allocated_at": 0.0,
        "started_at": 0.0,
        "grace_seconds": 0.0,
        "state": JobState.RUNNING,
    }
    return Job(
        id=f"j-{serial}",
        name=f"job-{serial}",
        user=user,
        attempt=1,
        request=request,
        allocation=Allocation(grants=grants, model=model if has_gpus else ""),
        **{**base, **values},
    )


def snapshot_of(*things: Node | Queue | Job | Change) -> ClusterSnapshot:
    """A snapshot of these; the queue `default` is there unless given."""
    snapshot = ClusterSnapshot()
    if not any(isinstance(thing, Queue) for thing in things):
        snapshot.apply([PutQueue(queue=Queue(name="default", policy="fcfs"))])
    for thing in things:
        match thing:
            case Node():
                snapshot.apply([PutNode(node=thing)])
            case Queue():
                snapshot.apply([PutQueue(queue=thing)])
            case Job():
                snapshot.apply([PutJob(job=thing)])
            case _:
                snapshot.apply([thing])
    return snapshot


def started(plan: Plan) -> dict[str, list[str]]:
    """The starts of a plan: the nodes of each job, in the order of the starts."""
    return {start.job_id: [grant.node for grant in start.allocation.grants] for start in plan.starts}


def promises(plan: Plan) -> dict[str, float]:
    return {planned.job_id: planned.at for planned in plan.planned}
