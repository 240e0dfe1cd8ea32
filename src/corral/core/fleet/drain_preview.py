"""The preview of a drain of nodes at some time: which jobs still run then, what they lose, where they would continue.

A preview, not a plan: ends are predictions, the queue moves on meanwhile, and nothing is changed. The places of
displaced jobs are tried one after the other, on the resources that will be free at that time as far as is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from corral.core.counts import counted
from corral.core.fleet.free_gpus import free_gpus
from corral.core.fleet.resources import gpus_text
from corral.core.model import WHOLE, Allocation, Job, JobKind, JobState, Prediction, Request
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.backfill.planned_start import PlannedStartSearch
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.trial import Trial

#: The predicted remaining time of a running job; None without similar runs.
Remaining = Callable[[Job], Prediction | None]


class Displaced(StrEnum):
    SURELY = "surely"
    LIKELY = "likely"
    POSSIBLY = "possibly"
    NO = "no"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A predicted time: p50 and p90."""

    p50: float
    p90: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DisplacedJob:
    job: Job
    #: its GPUs on the nodes
    gpus: tuple[str, ...]
    #: from similar runs; None if there are none
    ends_at: Span | None
    #: when its time limit ends it
    limit_at: float | None
    displaced: Displaced
    lost_gpu_seconds: float
    #: nodes that have room for the job, and from when on; None if not known
    goes_to: tuple[str, ...] | None
    back_at: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stranded:
    """A waiting job that could run on no other node than the drained ones."""

    job: Job
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """A pool without the nodes: its usable GPUs, and those that are free when all displaced jobs are placed."""

    gpus: int
    free: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DrainPreview:
    nodes: tuple[str, ...]
    at: float
    #: None if some job has no known end; `now` for empty nodes
    empty_at: Span | None
    jobs: tuple[DisplacedJob, ...]
    stranded: tuple[Stranded, ...]
    #: capacity of every pool that has GPUs on the nodes
    capacity_after: dict[str, Capacity]


def preview(
    snapshot: ClusterSnapshot, nodes: Sequence[str], at: float, now: float, remaining: Remaining
) -> DrainPreview:
    """The preview of draining these nodes together at that time: no job moves from one of them to another."""
    at = max(at, now)
    drained = frozenset(nodes)
    # 1. The jobs on the nodes, and whether they still run at that time.
    outlooks = [_outlook(job, drained, at, now, remaining) for job in _jobs_on(snapshot, drained)]
    with snapshot.trial() as trial:
        # 2. Jobs that have ended by then release their resources.
        displacement = _Displacement(snapshot, trial)
        for job in _over_by(snapshot, drained, at, now, remaining):
            displacement.lift(job)
        # 3. The other jobs are placed on other nodes, the oldest first.
        placed = [_placed(displacement, item, drained, at) for item in outlooks]
        capacity = _capacity(snapshot, drained, at)
    return DrainPreview(
        nodes=tuple(nodes),
        at=at,
        empty_at=_empty_at(outlooks, now),
        jobs=tuple(placed),
        stranded=tuple(_stranded(snapshot, drained)),
        capacity_after=capacity,
    )


def _jobs_on(snapshot: ClusterSnapshot, drained: Set[str]) -> list[Job]:
    found = [
        job
        for job in snapshot.jobs.values()
        if job.allocation is not None and any(grant.node in drained for grant in job.allocation.grants)
    ]
    return sorted(found, key=lambda job: (job.allocated_at or 0.0, job.serial))


def _outlook(job: Job, drained: Set[str], at: float, now: float, remaining: Remaining) -> DisplacedJob:
    assert job.allocation is not None
    expected = _ends_at(job, now, remaining)
    limit_at = job.expected_end if math.isfinite(job.expected_end) else None
    return DisplacedJob(
        job=job,
        gpus=tuple(gpu for grant in job.allocation.grants if grant.node in drained for gpu in grant.gpus),
        ends_at=expected,
        limit_at=limit_at,
        displaced=_chance(job, expected, limit_at, at, now),
        lost_gpu_seconds=_lost(job, at, now),
        goes_to=None,
        back_at=None,
    )


def _ends_at(job: Job, now: float, remaining: Remaining) -> Span | None:
    if job.state is JobState.STOPPING and not job.is_resizing:
        return Span(p50=now, p90=now + job.grace_seconds)
    known = remaining(job)
    if known is None:
        return None
    latest = job.expected_end
    return Span(p50=min(latest, now + max(0.0, known.p50_seconds)), p90=min(latest, now + max(0.0, known.p90_seconds)))


def _chance(job: Job, expected: Span | None, limit_at: float | None, at: float, now: float) -> Displaced:
    """How likely the job still runs at that time."""
    if at <= now:
        return Displaced.SURELY
    if limit_at is not None and limit_at <= at:
        return Displaced.NO
    if expected is None:
        # A workbench runs until its user stops it; for other jobs nothing is known.
        return Displaced.SURELY if job.kind is JobKind.WORKBENCH else Displaced.LIKELY
    return Displaced.LIKELY if at < expected.p50 else Displaced.POSSIBLY


def _lost(job: Job, at: float, now: float) -> float:
    """GPU-seconds since the last checkpoint. A job that writes checkpoints is assumed to continue: its last checkpoint
    will be as old as it is now; a job without checkpoints loses all its work."""
    assert job.allocation is not None
    if job.started_at is None:
        return 0.0
    saved_at = max(job.started_at, job.checkpointed_at or job.started_at)
    until = now if job.checkpointed_at is not None and job.checkpointed_at > job.started_at else at
    return max(0.0, until - saved_at) * job.allocation.total_gpu_milli / WHOLE


def _over_by(snapshot: ClusterSnapshot, drained: Set[str], at: float, now: float, remaining: Remaining) -> list[Job]:
    """The jobs on GPUs of the nodes' models that end by then, surely or by their p90."""
    found = []
    models = {gpu.model for node in drained for gpu in snapshot.nodes[node].gpus}
    for job in snapshot.jobs.values():
        if job.allocation is None or at <= now or (job.allocation.model and job.allocation.model not in models):
            continue
        expected = _ends_at(job, now, remaining)
        if job.expected_end <= at or (expected is not None and expected.p90 <= at):
            found.append(job)
    return found


class _Displacement:
    """Jobs that are removed from their nodes within a trial, and placed again if possible."""

    def __init__(self, snapshot: ClusterSnapshot, trial: Trial) -> None:
        self.snapshot = snapshot
        self._trial = trial
        self._lifted: dict[str, Job] = {}

    def lift(self, job: Job) -> Job:
        """Removes the job from its nodes; returns the job without resources."""
        if job.id not in self._lifted:
            assert job.allocation is not None
            lifted = replace(job, allocation=Allocation(grants=(), model=job.allocation.model))
            self._trial.resize(job, lifted)
            self._lifted[job.id] = lifted
        return self._lifted[job.id]

    def put(self, job: Job, allocation: Allocation) -> None:
        placed = replace(self._lifted[job.id], allocation=allocation)
        self._trial.resize(self._lifted[job.id], placed)
        self._lifted[job.id] = placed


def _placed(displacement: _Displacement, item: DisplacedJob, drained: Set[str], at: float) -> DisplacedJob:
    """The job with its new nodes, and from when on: at once, or when enough other jobs have ended."""
    snapshot, queue = displacement.snapshot, displacement.snapshot.queues.get(item.job.queue)
    if item.displaced is Displaced.NO or queue is None:
        return item
    lifted = displacement.lift(item.job)
    moved = replace(lifted, avoid_nodes=(*lifted.avoid_nodes, *sorted(drained)))
    reserved = Reserved(snapshot, at)
    found = find_open_place(reserved, snapshot.fleet, moved, queue, end_if_started(moved, at))
    if found is not None:
        displacement.put(lifted, found)
        return replace(item, goes_to=tuple(grant.node for grant in found.grants), back_at=at)
    if not could_ever_fit(snapshot.fleet, reserved.ever(moved, queue.pool), queue.pool):
        return item
    later = PlannedStartSearch(snapshot=snapshot, now=at, reserved=reserved).find(moved, queue.pool)
    if later is None or not math.isfinite(later.at):
        return item
    return replace(item, goes_to=tuple(grant.node for grant in later.allocation.grants), back_at=later.at)


def _capacity(snapshot: ClusterSnapshot, drained: Set[str], at: float) -> dict[str, Capacity]:
    """The GPUs of each pool that has GPUs on the nodes."""
    here = {gpu.pool for node in drained for gpu in snapshot.nodes[node].gpus}
    found = {pool: Capacity(gpus=0, free=0) for pool in sorted(here)}
    idle = free_gpus(snapshot, at).free
    for slot in snapshot.fleet.slots:
        if slot.node.id in drained:
            continue
        for (pool, model), gpus in slot.domains.items():
            if pool in found and model:
                free = sum(gpu in idle for gpu in gpus)
                found[pool] = Capacity(gpus=found[pool].gpus + len(gpus), free=found[pool].free + free)
    return found


def _empty_at(outlooks: Iterable[DisplacedJob], now: float) -> Span | None:
    """The time at which the last job has ended; without a prediction the time limit counts."""
    p50 = p90 = now
    for item in outlooks:
        if item.ends_at is not None:
            p50, p90 = max(p50, item.ends_at.p50), max(p90, item.ends_at.p90)
        elif item.limit_at is not None:
            p50, p90 = max(p50, item.limit_at), max(p90, item.limit_at)
        else:
            return None
    return Span(p50=p50, p90=p90)


def _stranded(snapshot: ClusterSnapshot, drained: Set[str]) -> Iterator[Stranded]:
    """Waiting jobs that could run on the fleet, but not without the nodes; the oldest first."""
    fits: dict[tuple[object, ...], bool] = {}
    fleet, names = snapshot.fleet, sorted(drained)

    def could_fit(job: Job, pool: str) -> bool:
        key = (pool, job.request, job.avoid_nodes, job.avoid_gpus)
        if key not in fits:
            fits[key] = could_ever_fit(fleet, job, pool)
        return fits[key]

    pools = {pool for node in names for pool, _ in fleet.slot(node).domains}
    without_text = names[0] if len(names) == 1 else f"these {counted(len(names), 'node')}"
    waiting = [job for line in snapshot.lines.values() for job in line.jobs.values()]
    for job in sorted(waiting, key=lambda job: job.serial):
        queue = snapshot.queues.get(job.queue)
        if queue is None or (job.request.wants_gpu and queue.pool not in pools):
            continue
        without = replace(job, avoid_nodes=(*job.avoid_nodes, *names))
        if could_fit(job, queue.pool) and not could_fit(without, queue.pool):
            yield Stranded(
                job=job,
                detail=f"without {without_text} no node of pool {queue.pool} can hold {_request_text(job.request)}",
            )


def _request_text(request: Request) -> str:
    if not request.wants_gpu:
        return "its CPUs and memory"
    gpus = gpus_text(request.gpus * WHOLE + request.gpu_milli)
    text = f"{gpus} {'/'.join(request.models) + ' ' if request.models else ''}{'GPU' if gpus == '1' else 'GPUs'}"
    return f"{text} on each of {request.nodes} nodes" if request.is_gang else text
