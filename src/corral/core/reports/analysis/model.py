"""The input of an analysis and its findings, as immutable values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from corral.core.alerts.model import Severity
from corral.core.model import WHOLE, Allocation, Gpu, Job, JobKind, JobState, Node, Queue
from corral.core.monitoring.attempt_usage import IDLE_UTILIZATION, NOTHING_MEASURED, Measured

Value = TypeVar("Value")

HOUR = 3600.0

#: The numbers and short texts of a finding.
Evidence = Mapping[str, float | int | str]


class FindingKind(StrEnum):
    IDLE_ALLOCATION = "idle-allocation"
    LOW_UTILIZATION = "low-utilization"
    OVERSIZED_REQUEST = "oversized-request"
    FRAGMENTATION = "fragmentation"
    HOT_GPU = "hot-gpu"
    POOL_BALANCE = "pool-balance"
    STARVING_QUEUE = "starving-queue"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """An opportunity for improvement."""

    kind: FindingKind
    severity: Severity
    #: the job, GPU, queue or pool
    subject: str
    title: str
    evidence: Evidence
    #: one or two sentences
    text: str
    #: what to do about it
    proposal: str
    #: sorts findings of one kind; the largest come first
    weight: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageLine:
    """The resources that one attempt held and used."""

    attempt_id: str
    job_id: str
    job_name: str
    user: str
    kind: JobKind
    queue: str
    pool: str
    #: "" without GPUs
    model: str
    nodes: int
    gpu_milli: int
    gpu_ids: tuple[str, ...] = ()
    queued_at: float
    planned_at: float
    ended_at: float | None = None
    measured: Measured = NOTHING_MEASURED

    def gpu_seconds(self, since: float, until: float) -> float:
        """GPU time that the attempt held within a period."""
        end = until if self.ended_at is None else min(self.ended_at, until)
        return max(0.0, end - max(self.planned_at, since)) * self.gpu_milli / WHOLE


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageSize:
    """A package that users can choose, on one node."""

    name: str
    gpus: int = 0
    gpu_milli: int = 0
    #: the GPU models of the package; empty means any
    models: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisRules:
    """Thresholds of the findings."""

    #: mean utilization below which a GPU is idle, and below which it is poorly used
    idle_utilization: float = IDLE_UTILIZATION
    low_utilization: float = 0.3
    #: jobs that have held less than this are not considered
    least_gpu_hours: float = 1.0
    #: memory in use, as a part of a GPU's, below which the GPU is too large for the job
    low_memory: float = 0.25
    hot_celsius: float = 85.0
    #: how much warmer than the other GPUs of its node
    hotter_than_neighbours_celsius: float = 15.0
    #: GPUs below this temperature are never hot, whatever the others' temperatures are
    warm_celsius: float = 60.0
    #: a wait that is long compared with other queues; and one that is long in any case
    long_wait_seconds: float = 2 * HOUR
    very_long_wait_seconds: float = 24 * HOUR
    #: how many times longer than other queues
    longer_than_others: float = 3.0
    #: a pool with shorter waits needs no GPUs from another
    pool_wait_seconds: float = 600.0
    #: the least part of all attempts that makes a size typical
    typical_part: float = 0.1
    #: the most work that a restart costs: the assumed time between checkpoints
    checkpoint_seconds: float = 600.0
    most_moves: int = 10
    most_findings: int = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisInput:
    """The input of an analysis."""

    since: float
    until: float
    nodes: tuple[Node, ...] = ()
    #: waiting jobs and jobs that hold resources
    jobs: tuple[Job, ...] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)
    #: GPUs that are reserved now: no job is moved to them
    reserved: Set[str] = frozenset()
    #: all attempts that held resources in the period
    usage: tuple[UsageLine, ...] = ()
    #: mean utilization of each GPU in the last `recent_seconds`; absent without measurements
    recent_utilization: Mapping[str, float] = field(default_factory=dict)
    #: mean temperature of each GPU in the same time
    recent_temperature: Mapping[str, float] = field(default_factory=dict)
    recent_seconds: float = 1800.0
    packages: tuple[PackageSize, ...] = ()
    rules: AnalysisRules = AnalysisRules()
    #: caches: of `waiting_in`, and of values that several findings read
    _waiting: dict[str, list[Job]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of that key, which is made at the first call. Callers must not change it."""
        if key not in self._kept:
            self._kept[key] = make()
        value: Value = self._kept[key]
        return value

    def waiting_in(self, pool: str) -> Sequence[Job]:
        """Jobs that wait for GPUs of the pool, the oldest first. All pools are looked through once."""
        if not self._waiting:
            found: dict[str, list[Job]] = {queue.pool: [] for queue in self.queues.values()}
            for job in self.jobs:
                queue = self.queues.get(job.queue) if job.state is JobState.QUEUED else None
                if queue and not job.after and job.not_before <= self.until and job.request.wants_gpu:
                    found[queue.pool].append(job)
            for jobs in found.values():
                jobs.sort(key=lambda job: (job.queued_at or job.created_at, job.serial))
            self._waiting.update(found)
        return self._waiting.get(pool, ())

    def gpus(self) -> dict[str, tuple[Node, Gpu]]:
        return {gpu.id: (node, gpu) for node in self.nodes for gpu in node.gpus}


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A running job that would be restarted on another node from its last checkpoint."""

    job_id: str
    job_name: str
    user: str
    from_node: str
    to_node: str
    before: Allocation
    after: Allocation
    #: work that has to be repeated: at most the time since the last checkpoint, on all its GPUs
    lost_gpu_hours: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FreedNode:
    node: str
    pool: str
    model: str
    #: the node's GPUs of that pool and model, which would be free then
    gpus: tuple[str, ...]
    #: how many of them are free already
    free_before: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DefragmentationPlan:
    """Moves in the order in which they must be made. They are a proposal only."""

    moves: tuple[Move, ...] = ()
    frees: tuple[FreedNode, ...] = ()
    #: waiting jobs that have no place now and would have one after the moves
    helps: tuple[str, ...] = ()

    @property
    def lost_gpu_hours(self) -> float:
        return sum(move.lost_gpu_hours for move in self.moves)
