"""The facts that alerts are judged by, put together from the snapshot, the latest readings and the audit log.

`look` runs between two turns of the controller and must be quick: it only takes hold of what is immutable anyway.
`facts_of` does the work, on the evaluating worker's thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corral.control.fleet.node_views import GpuView, NodeView
from corral.control.live.state import State
from corral.control.ports import GpuReading, Transaction
from corral.control.records import EventFilter, VolumeState
from corral.core.alerts.facts import Facts, FailureFact, GpuFact, NodeFact, PoolFact, QueueFact, RowFact, VolumeFact
from corral.core.alerts.recent import Recent
from corral.core.model import GpuHealth
from corral.core.monitoring.health.model import Condition

#: For how long a failed job counts.
FAILURE_SECONDS = 600.0
#: More failures than these in that time are one problem, and the first ones are reported.
MAX_FAILURES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """The controller's state at one moment."""

    nodes: Sequence[NodeView]
    pools: Sequence[PoolFact]
    queues: Sequence[QueueFact]
    #: has every GPU
    places: Mapping[str, int]
    rows: Sequence[RowFact] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """The facts of one node, as long as its view is the same and its GPUs have no readings."""

    view: NodeView
    node: NodeFact
    gpus: Sequence[GpuFact]


def look(state: State, now: float) -> Look:
    fleet = state.fleet(now)
    pools: dict[str, PoolFact] = {}
    for (pool, _), counts in fleet.by_pool().items():
        before = pools.get(pool) or PoolFact(id=pool, gpus=0, free=0)
        pools[pool] = PoolFact(id=pool, gpus=before.gpus + counts.gpus, free=before.free + counts.free)
    return Look(
        nodes=fleet.views(),
        pools=list(pools.values()),
        queues=_queues(state, now),
        places=fleet.held_gpus().places,
        rows=[RowFact(id=f"{row.table} {row.key}", error=row.error) for row in state.unreadable],
    )


def facts_of(
    seen: Look,
    readings: Mapping[str, GpuReading],
    recent: Recent,
    failures: Sequence[FailureFact],
    volumes: Sequence[VolumeFact],
    now: float,
    kept: dict[str, NodeFacts] | None = None,
) -> Facts:
    """`readings` are those that can be believed. `kept` has the facts of the last time, and gets those of this time:
    a node is described again only if it has changed or is measured."""
    before = {} if kept is None else dict(kept)
    if kept is not None:
        kept.clear()
    nodes: list[NodeFact] = []
    gpus: list[GpuFact] = []
    for view in seen.nodes:
        known = before.get(view.node.id)
        is_measured = any(gpu.gpu.id in readings or recent.watches(gpu.gpu.id) for gpu in view.gpus)
        if known is None or known.view is not view or is_measured:
            own = [_gpu(gpu, readings.get(gpu.gpu.id), recent, now) for gpu in view.gpus]
            known = NodeFacts(view=view, node=_node(view, own), gpus=own)
        if kept is not None and not is_measured:
            kept[view.node.id] = known
        nodes.append(known.node)
        gpus += known.gpus
    return Facts(
        now=now,
        gpus=gpus,
        nodes=nodes,
        queues=seen.queues,
        pools=seen.pools,
        failures=failures,
        volumes=volumes,
        rows=seen.rows,
    )


def _node(view: NodeView, gpus: Sequence[GpuFact]) -> NodeFact:
    jobs = dict.fromkeys(job for gpu in gpus for job in gpu.jobs)
    return NodeFact(id=view.node.id, state=view.node.state, gpus=len(gpus), jobs=tuple(jobs))


def failures(tx: Transaction, now: float) -> list[FailureFact]:
    """Jobs that ended as failed in the last minutes, newest first; each once."""
    page = tx.events.page(
        EventFilter(action="job.failed", since=now - FAILURE_SECONDS), cursor=None, limit=MAX_FAILURES
    )
    found: dict[str, FailureFact] = {}
    for event in page.items:
        if event.subject in found or not event.owner:
            continue  # a check of a GPU is no work of its user
        record = tx.jobs.get(event.subject)
        code = event.detail.get("exit_code")
        reason = str(event.detail.get("reason") or "")
        found[event.subject] = FailureFact(
            id=event.subject,
            at=event.at,
            user=event.owner,
            name=record.job.name if record is not None else "",
            reason=f"{reason} {code}" if reason == "exit_code" and code is not None else reason,
            message=str(event.detail.get("message") or "")[:200],
        )
    return list(found.values())


def volumes(tx: Transaction) -> list[VolumeFact]:
    """The facts of volumes that can become full; buckets have no size here."""
    return [
        VolumeFact(
            id=volume.id,
            name=volume.name,
            owner=volume.owner,
            size_bytes=volume.size_bytes,
            used_bytes=volume.used_bytes,
        )
        for volume in tx.volumes.all()
        if volume.size_bytes and volume.state is not VolumeState.DELETING
    ]


def _gpu(view: GpuView, reading: GpuReading | None, recent: Recent, now: float) -> GpuFact:
    gpu = view.gpu
    # The last reading of a lost GPU is outdated.
    valid = reading if reading is not None and not reading.lost else GpuReading(gpu_id=gpu.id, at=now)
    return GpuFact(
        id=gpu.id,
        node=view.node,
        model=gpu.model,
        pool=gpu.pool,
        health=gpu.health,
        evidence=_evidence(view.condition),
        temperature_celsius=valid.temperature_celsius,
        power_watts=valid.power_watts,
        power_part=_part(valid.power_watts, valid.power_limit_watts),
        utilization=valid.utilization,
        memory_part=_part(valid.memory_used_bytes, valid.memory_total_bytes),
        errors=recent.errors(gpu.id, now),
        idle_seconds=recent.idle_seconds(gpu.id) if valid is reading else None,
        jobs=tuple(dict.fromkeys(job.id for job in view.jobs)),
        users=tuple(dict.fromkeys(job.user for job in view.jobs)),
    )


def _evidence(condition: Condition | None) -> str:
    """The newest evidence against a GPU that is not healthy, or ""."""
    if condition is None or condition.health is GpuHealth.HEALTHY or not condition.evidence:
        return ""
    return condition.evidence[-1].text


def _part(used: float | None, total: float | None) -> float | None:
    return None if used is None or not total else used / total


def _queues(state: State, now: float) -> list[QueueFact]:
    waiting: dict[str, int] = dict.fromkeys(state.snapshot.queues, 0)
    oldest: dict[str, tuple[float, str]] = {}
    for key, line in state.snapshot.lines.items():
        waiting[key.queue] = waiting.get(key.queue, 0) + len(line.jobs)
        first = min(line.jobs.values(), key=lambda job: job.queued_at or now)
        since = (first.queued_at or now, first.id)
        oldest[key.queue] = min(oldest.get(key.queue, since), since)
    return [
        QueueFact(
            id=name,
            waiting=count,
            longest_wait_seconds=max(0.0, now - oldest[name][0]) if name in oldest else 0.0,
            first_job=oldest[name][1] if name in oldest else "",
            plan_failure=_plan_failure(state, name),
        )
        for name, count in waiting.items()
    ]


def _plan_failure(state: State, queue: str) -> str:
    failure = state.plan_failures.get(queue) or state.plan_failures.get("")
    return "" if failure is None else f"{failure.error} (snapshot {failure.digest})"
