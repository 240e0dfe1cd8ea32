"""An independent count of what is held where: from allocations and their times, without the scheduler's indexes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from corral.core.model import WHOLE, Allocation, Job, Node
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import Fleet

#: a job, and when it held what
Interval = tuple[str, float, float, Allocation]


def check_never_oversubscribed(nodes: Iterable[Node], intervals: Iterable[Interval]) -> None:
    """At no moment more is held of a GPU or a node than it has."""
    intervals = list(intervals)
    known = {node.id: node for node in nodes}
    for moment in sorted({start for _, start, _, _ in intervals}):
        gpus: dict[str, int] = defaultdict(int)
        cpu: dict[str, int] = defaultdict(int)
        memory: dict[str, int] = defaultdict(int)
        for _, start, end, allocation in intervals:
            if start <= moment < end:
                for grant in allocation.grants:
                    cpu[grant.node] += grant.cpu_milli
                    memory[grant.node] += grant.memory_bytes
                    for gpu in grant.gpus:
                        gpus[gpu] += grant.gpu_milli
        assert all(held <= WHOLE for held in gpus.values()), (moment, gpus)
        assert all(held <= known[node].cpu_milli for node, held in cpu.items()), (moment, cpu)
        assert all(held <= known[node].memory_bytes for node, held in memory.items()), (moment, memory)


def check_allocation(nodes: dict[str, Node], pool: str, job: Job, allocation: Allocation) -> None:
    """It is what the job asked for, on hardware that the job may use."""
    request = job.request
    places = [grant.node for grant in allocation.grants]
    assert len(places) == request.nodes, "a gang starts whole"
    assert len(set(places)) == len(places), "each instance has a node of its own"
    assert not set(places) & set(job.avoid_nodes)
    models = set()
    for grant in allocation.grants:
        node = nodes[grant.node]
        assert node.state == "ready"
        assert set(request.labels) <= set(node.labels)
        assert grant.cpu_milli == request.cpu_milli
        assert grant.memory_bytes == request.memory_bytes
        assert len(set(grant.gpus)) == len(grant.gpus) == (1 if request.gpu_milli else request.gpus)
        assert not set(grant.gpus) & set(job.avoid_gpus)
        if grant.gpus:
            assert grant.gpu_milli == (request.gpu_milli or WHOLE)
        for gpu in node.gpus:
            if gpu.id in grant.gpus:
                assert gpu.health == "healthy"
                assert gpu.pool == pool
                assert not request.models or gpu.model in request.models
                models.add(gpu.model)
        assert set(grant.gpus) <= {gpu.id for gpu in node.gpus}
    assert models == ({allocation.model} if request.wants_gpu else set()), "one model for all"


def free_on(snapshot: ClusterSnapshot) -> dict[str, tuple[int, int, dict[str, int]]]:
    """CPUs, memory and thousandths of each GPU that are left on each node, counted from the jobs."""
    left = {
        node.id: [node.cpu_milli, node.memory_bytes, {gpu.id: WHOLE for gpu in node.gpus}]
        for node in snapshot.nodes.values()
    }
    for job in snapshot.jobs.values():
        for grant in job.allocation.grants if job.allocation else ():
            if grant.node in left:
                left[grant.node][0] -= grant.cpu_milli  # type: ignore[operator]
                left[grant.node][1] -= grant.memory_bytes  # type: ignore[operator]
                for gpu in grant.gpus:
                    if gpu in left[grant.node][2]:  # type: ignore[operator]
                        left[grant.node][2][gpu] -= grant.gpu_milli  # type: ignore[index]
    return {node: (free[0], free[1], free[2]) for node, free in left.items()}  # type: ignore[misc]


def dump_fleet(fleet: Fleet) -> dict[str, Any]:
    """Everything that the indexes say, less empty buckets, which no decision sees."""
    return {
        "order": [slot.node.id for slot in fleet.slots],
        "last": fleet.last_place,
        "homes": dict(fleet.gpu_home),
        "slots": {
            slot.node.id: (slot.node, slot.bit, slot.free_cpu_milli, slot.free_memory_bytes, dict(slot.free_milli))
            for slot in fleet.slots
        },
        "domains": {
            domain: (
                index.members,
                index.free_gpus,
                {count: bits for count, bits in enumerate(index.whole) if bits},
                dict(index.partial),
                dict(index.linked),
            )
            for domain, index in fleet.domains.items()
            if index.members
        },
        "labels": {label: bits for label, bits in fleet._labelled.items() if bits},
        "racks": fleet.racks(),
        "present": dict(fleet._present),
    }


def dump_snapshot(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """The content and everything derived from it."""
    return {
        "nodes": dict(snapshot.nodes),
        "jobs": dict(snapshot.jobs),
        "queues": dict(snapshot.queues),
        "quotas": dict(snapshot.quotas),
        "scores": dict(snapshot.scores),
        "rules": (snapshot.limits, snapshot.score_time_constant, snapshot.last_node),
        "releases": list(snapshot.releases),
        "held": _usage(snapshot.held),
        "active": _usage(snapshot.active),
        "holders": +snapshot.holders,
        "lines": {
            key: ([job.id for job in line.cursor(lambda user: 0.0)], line.policy)
            for key, line in snapshot.lines.items()
        },
        "states": {state: snapshot.count(state) for state in snapshot._by_state},
        "fleet": dump_fleet(snapshot.fleet),
    }


def _usage(usage: Any) -> tuple[Any, ...]:
    return (
        usage.total_gpu_milli,
        {user: held for user, held in usage.by_user.items() if held},
        {queue: held for queue, held in usage.by_queue.items() if held},
        {key: amount for key, amount in usage.by_kind.items() if amount != type(amount)()},
    )
