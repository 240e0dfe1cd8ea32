"""The facts that alerts are judged by, put together from the snapshot, the latest readings and the audit log.

`look` runs between two turns of the controller and must be quick: it only takes hold of what is immutable anyway.
`facts_of` does the work, on the evaluating worker's thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from corral.control.fleet.gpu_holders import holders
from corral.control.live.state import State
from corral.control.ports import GpuReading, Holder, Transaction
from corral.control.records import EventFilter, VolumeState
from corral.core.alerts.facts import Facts, FailureFact, GpuFact, NodeFact, PoolFact, QueueFact, RowFact, VolumeFact
from corral.core.alerts.recent import Recent
from corral.core.fleet.free_gpus import free_gpus
from corral.core.model import Gpu, GpuHealth, Node

#: For how long a failed job counts.
FAILURE_SECONDS = 600.0
#: More failures than these in that time are one problem, and the first ones are reported.
MAX_FAILURES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What the controller knows at one moment."""

    nodes: Sequence[Node]
    holders: Mapping[str, Sequence[Holder]]
    queues: Sequence[QueueFact]
    #: GPUs that a job could start on
    free: Set[str] = frozenset()
    rows: Sequence[RowFact] = ()
    #: what speaks against each GPU that is not healthy: the newest of it
    evidence: Mapping[str, str] = field(default_factory=dict)


def look(state: State, now: float) -> Look:
    return Look(
        nodes=tuple(state.snapshot.nodes.values()),
        holders=holders(state),
        queues=_queues(state, now),
        free=free_gpus(state.snapshot, now).free,
        rows=[RowFact(id=f"{row.table} {row.key}", error=row.error) for row in state.unreadable],
        evidence={
            gpu_id: condition.evidence[-1].text
            for gpu_id, condition in state.conditions.items()
            if condition.evidence and condition.health is not GpuHealth.HEALTHY
        },
    )


def facts_of(
    seen: Look,
    readings: Mapping[str, GpuReading],
    recent: Recent,
    failures: Sequence[FailureFact],
    volumes: Sequence[VolumeFact],
    now: float,
) -> Facts:
    """`readings` are those that can be believed."""
    jobs_on: defaultdict[str, dict[str, None]] = defaultdict(dict)
    gpus, pools = [], defaultdict[str, list[bool]](list)
    for node in seen.nodes:
        for gpu in node.gpus:
            held_by = seen.holders.get(gpu.id, ())
            jobs_on[node.id].update(dict.fromkeys(holder.job_id for holder in held_by))
            gpus.append(_gpu(gpu, node, held_by, readings.get(gpu.id), recent, seen.evidence.get(gpu.id, ""), now))
            pools[gpu.pool].append(gpu.id in seen.free)
    return Facts(
        now=now,
        gpus=gpus,
        nodes=[
            NodeFact(id=node.id, state=node.state, gpus=len(node.gpus), jobs=tuple(jobs_on[node.id]))
            for node in seen.nodes
        ],
        queues=seen.queues,
        pools=[PoolFact(id=name, gpus=len(free), free=sum(free)) for name, free in pools.items()],
        failures=failures,
        volumes=volumes,
        rows=seen.rows,
    )


def failures(tx: Transaction, now: float) -> list[FailureFact]:
    """Jobs that failed for good in the last minutes, newest first; each once."""
    page = tx.events.page(
        EventFilter(action="job.failed", since=now - FAILURE_SECONDS), cursor=None, limit=MAX_FAILURES
    )
    found: dict[str, FailureFact] = {}
    for event in page.items:
        if event.subject in found:
            continue
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
    """Those that can become full: a bucket has no size here."""
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


def _gpu(
    gpu: Gpu,
    node: Node,
    held_by: Sequence[Holder],
    reading: GpuReading | None,
    recent: Recent,
    evidence_text: str,
    now: float,
) -> GpuFact:
    # The last reading of a lost GPU is outdated.
    valid = reading if reading is not None and not reading.lost else GpuReading(gpu_id=gpu.id, at=now)
    return GpuFact(
        id=gpu.id,
        node=node.id,
        model=gpu.model,
        pool=gpu.pool,
        health=gpu.health,
        evidence=evidence_text,
        temperature_celsius=valid.temperature_celsius,
        power_watts=valid.power_watts,
        power_part=_part(valid.power_watts, valid.power_limit_watts),
        utilization=valid.utilization,
        memory_part=_part(valid.memory_used_bytes, valid.memory_total_bytes),
        errors=recent.errors(gpu.id, now),
        idle_seconds=recent.idle_seconds(gpu.id) if valid is reading else None,
        jobs=tuple(dict.fromkeys(holder.job_id for holder in held_by)),
        users=tuple(dict.fromkeys(holder.user for holder in held_by)),
    )


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
