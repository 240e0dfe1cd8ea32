"""What an analysis is made from, and what it finds, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from corral.core.alerts.model import Severity
from corral.core.model import WHOLE, Allocation, Gpu, Job, JobKind, Node, Queue
from corral.core.monitoring.attempt_usage import NOTHING_MEASURED, Measured

HOUR = 3600.0

#: A number or a short text that stands behind a finding.
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
    """Something that could be better."""

    kind: FindingKind
    severity: Severity
    #: the job, GPU, queue or pool that it is about
    subject: str
    title: str
    evidence: Evidence
    #: what is the case, in a sentence or two
    text: str
    #: what to do about it
    proposal: str
    #: how much of it there is, within its kind; the largest come first
    weight: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageLine:
    """What one attempt held and used."""

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
        """GPU time that it held within a span."""
        end = until if self.ended_at is None else min(self.ended_at, until)
        return max(0.0, end - max(self.planned_at, since)) * self.gpu_milli / WHOLE


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageSize:
    """A size that users can pick, on one node."""

    name: str
    gpus: int = 0
    gpu_milli: int = 0
    #: GPU models that it gets; empty means any
    models: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisRules:
    """From where on something is worth a finding."""

    #: mean use below which a GPU does nothing, and below which it is used poorly
    idle_utilization: float = 0.02
    low_utilization: float = 0.3
    #: a job that has held less than this tells nothing about itself
    least_gpu_hours: float = 1.0
    #: memory in use, as a part of a GPU's, below which the GPU is too large for the job
    low_memory: float = 0.25
    hot_celsius: float = 85.0
    #: warmer than the GPUs beside it by so much
    hotter_than_neighbours_celsius: float = 15.0
    #: cooler than this nothing is hot, whatever its neighbours do
    warm_celsius: float = 60.0
    #: waiting that is worth a word; and that is long whatever others wait
    long_wait_seconds: float = 2 * HOUR
    very_long_wait_seconds: float = 24 * HOUR
    #: longer than others wait by this factor
    longer_than_others: float = 3.0
    #: a pool whose queue waits less needs nothing from another
    pool_wait_seconds: float = 600.0
    #: at least this part of all attempts must ask for a size to make it a typical one
    typical_part: float = 0.1
    #: the work that a restart costs at most, as checkpoints are this far apart
    checkpoint_seconds: float = 600.0
    most_moves: int = 10
    most_findings: int = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisInput:
    """Everything that an analysis looks at."""

    since: float
    until: float
    nodes: tuple[Node, ...] = ()
    #: those that wait and those that hold resources
    jobs: tuple[Job, ...] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)
    #: of all attempts that held something in the period
    usage: tuple[UsageLine, ...] = ()
    #: mean use of each GPU in the last `recent_seconds`; absent when nothing was measured
    recent_utilization: Mapping[str, float] = field(default_factory=dict)
    #: mean temperature of each GPU in the same time
    recent_temperature: Mapping[str, float] = field(default_factory=dict)
    recent_seconds: float = 1800.0
    packages: tuple[PackageSize, ...] = ()
    rules: AnalysisRules = AnalysisRules()

    def gpus(self) -> dict[str, tuple[Node, Gpu]]:
        return {gpu.id: (node, gpu) for node in self.nodes for gpu in node.gpus}

    def pool_of(self, job: Job) -> str | None:
        """The pool whose GPUs it gets; None when its queue is gone."""
        queue = self.queues.get(job.queue)
        return None if queue is None else queue.pool


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A running job that would be started again somewhere else, from its last checkpoint."""

    job_id: str
    job_name: str
    user: str
    from_node: str
    to_node: str
    before: Allocation
    after: Allocation
    #: work that is done again: at most the time since its last checkpoint, on all its GPUs
    lost_gpu_hours: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FreedNode:
    node: str
    pool: str
    model: str
    #: all its GPUs of that pool and model, which would then be free
    gpus: tuple[str, ...]
    #: how many of them are free already
    free_before: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DefragmentationPlan:
    """Moves, to be made in this order. Nothing carries them out by itself."""

    moves: tuple[Move, ...] = ()
    frees: tuple[FreedNode, ...] = ()
    #: waiting jobs that find no place now and would find one after the moves
    helps: tuple[str, ...] = ()

    @property
    def lost_gpu_hours(self) -> float:
        return sum(move.lost_gpu_hours for move in self.moves)
