"""Jobs, nodes and queues as immutable values: the things that scheduling decisions are about.

A value has only fields that can change a decision. The command and the environment of a job, and how things are stored
or shown, belong to the layers around the core. Times are seconds since the epoch, always passed by the caller; sizes
are integers, so that sums never drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from corral.core.storage.volumes import VolumeMount

#: A whole GPU, or a whole CPU, in thousandths.
WHOLE = 1000

DEFAULT_POOL = "default"
DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 5

#: A label that every node has by itself: the name of its cluster.
CLUSTER_LABEL = "corral.cluster"

#: Marks a slice of a GPU in the name of a model, followed by its profile, as in H200-MIG-1g.18gb.
_SLICE_MARK = "-MIG-"


class JobKind(StrEnum):
    WORKBENCH = "workbench"
    TRAINING = "training"
    DISTRIBUTED = "distributed"
    PRESET = "preset"

    @property
    def is_preemptible(self) -> bool:
        """Whether jobs of this kind are preemptible by default. Workbenches are not: a user works in them, and they
        write no checkpoints by themselves."""
        return self is not JobKind.WORKBENCH


class JobState(StrEnum):
    CREATED = "created"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def holds_resources(self) -> bool:
        return self in HOLDING

    @property
    def is_active(self) -> bool:
        """Queued or holding resources. Such a job cannot be deleted."""
        return self is JobState.QUEUED or self in HOLDING

    @property
    def is_ended(self) -> bool:
        return self in ENDED


HOLDING = frozenset({JobState.STARTING, JobState.RUNNING, JobState.STOPPING})
ENDED = frozenset({JobState.STOPPED, JobState.COMPLETED, JobState.FAILED})


class EndReason(StrEnum):
    EXIT_CODE = "exit_code"
    OOM_KILLED = "oom_killed"
    EVICTED = "evicted"
    IMAGE_PULL_ERROR = "image_pull_error"
    LAUNCH_ERROR = "launch_error"
    NODE_LOST = "node_lost"
    GPU_FAILED = "gpu_failed"
    TIMED_OUT = "timed_out"
    PREEMPTED = "preempted"
    STOPPED_BY_USER = "stopped_by_user"
    STOPPED_BY_OPERATOR = "stopped_by_operator"
    LOST = "lost"
    #: the next attempt continues with other GPUs
    RESIZED = "resized"
    #: the next attempt continues on another node, so that another job has room
    MOVED = "moved"
    #: a job that this one depends on has not completed
    DEPENDENCY_FAILED = "dependency_failed"
    #: the job used more local disk than allowed
    DISK_QUOTA = "disk_quota"
    #: the program did no step for long, and its owner wants a restart then
    HUNG = "hung"


class NodeState(StrEnum):
    READY = "ready"
    CORDONED = "cordoned"
    DRAINING = "draining"
    #: shown for a draining node without jobs; never stored
    DRAINED = "drained"
    DOWN = "down"


class GpuHealth(StrEnum):
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    FAILED = "failed"


class Blocking(StrEnum):
    STRICT = "strict"
    BACKFILL = "backfill"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    id: str
    index: int
    model: str
    memory_bytes: int = 0
    health: GpuHealth = GpuHealth.HEALTHY
    pool: str = DEFAULT_POOL
    #: GPUs of a node with the same link group are linked to each other; empty while it is not known
    link_group: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Resources of a node that are held outside corral: corral does not allocate them."""

    gpus: tuple[str, ...] = ()
    cpu_milli: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    id: str
    cluster: str = "local"
    state: NodeState = NodeState.READY
    cpu_milli: int = 0
    memory_bytes: int = 0
    gpus: tuple[Gpu, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    #: measured load between 0 and 1; None before the first measurement
    load: float | None = None
    #: measured utilisation of GPUs with a free part, in tenths; GPUs without load are left out
    gpu_loads: tuple[tuple[str, float], ...] = ()
    #: the state that an operator has set: ready, cordoned or draining; kept while the node is down
    withheld: NodeState = NodeState.READY
    taken: Taken = Taken()
    #: why the node's engine does not use it, as set in that cluster
    reason: str = ""

    @property
    def all_labels(self) -> tuple[tuple[str, str], ...]:
        """The node's own labels and the label of its cluster."""
        return (*self.labels, (CLUSTER_LABEL, self.cluster))


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """The resources of every instance of a job. A job on more than one node is a gang."""

    nodes: int = 1
    #: whole GPUs per instance
    gpus: int = 0
    #: a share of one GPU in thousandths; 0 if whole GPUs or none are requested
    gpu_milli: int = 0
    #: 0 means: not reserved and not limited
    cpu_milli: int = 0
    memory_bytes: int = 0
    #: acceptable GPU models, sorted; empty means any
    models: tuple[str, ...] = ()
    #: labels that a node must have, sorted
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def is_gang(self) -> bool:
        return self.nodes > 1

    @property
    def wants_gpu(self) -> bool:
        return self.gpus > 0 or self.gpu_milli > 0

    @property
    def total_gpu_milli(self) -> int:
        return self.nodes * (self.gpus * WHOLE + self.gpu_milli)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The part of an allocation on one node."""

    node: str
    gpus: tuple[str, ...] = ()
    #: per GPU: WHOLE, or the share of the only GPU
    gpu_milli: int = WHOLE
    cpu_milli: int = 0
    memory_bytes: int = 0

    @property
    def total_gpu_milli(self) -> int:
        return len(self.gpus) * self.gpu_milli


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """The resources of an attempt, by node; the index of a grant is the rank of its instance."""

    grants: tuple[Grant, ...]
    #: the GPU model, or "" without GPUs; scores are per model
    model: str = ""

    @property
    def total_gpu_milli(self) -> int:
        return sum(grant.total_gpu_milli for grant in self.grants)

    @property
    def gpus(self) -> tuple[str, ...]:
        return tuple(gpu for grant in self.grants for gpu in grant.gpus)


@dataclass(frozen=True, kw_only=True, slots=True)
class Elastic:
    """How many GPUs an elastic job may have, on each of its nodes. Its request has the minimum while it waits, and what
    it holds while it runs."""

    min_gpus: int
    max_gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceiling:
    """An elastic job did not use `gpus` GPUs: until then it gets fewer."""

    gpus: int
    until: float
    #: how often that was found; the ceiling holds longer each time
    times: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """The predicted run time of a job from its next start, from earlier runs that were similar."""

    #: half of the runs took no longer than p50, nine tenths no longer than p90
    p50_seconds: float
    p90_seconds: float
    #: the number of runs
    samples: int
    #: what the runs have in common with the job, as text
    like: str = ""
    #: quantiles of the run times, ascending: equally many runs end between two neighbours. Empty if only p50 and p90
    #: are known.
    spread: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    id: str
    name: str
    user: str
    kind: JobKind = JobKind.TRAINING
    state: JobState = JobState.CREATED
    queue: str = DEFAULT_QUEUE
    request: Request = field(default_factory=Request)
    #: smaller numbers go first
    priority: int = DEFAULT_PRIORITY
    created_at: float = 0.0
    queued_at: float | None = None
    #: when it was first queued; kept when the job is requeued
    aged_from: float | None = None
    #: when an operator put the job to the front; the latest pin goes first
    pinned_at: float | None = None
    #: the position among the user's own jobs; 0 until the user moves one
    user_order: int = 0
    #: the longest run time; None means that the job runs until it is stopped
    time_limit_seconds: float | None = None
    grace_seconds: float = 30.0
    #: the number of the latest attempt; 0 before the first
    attempt: int = 0
    allocation: Allocation | None = None
    #: when the present attempt got its allocation, and when its processes ran
    allocated_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    #: why a stopping job is being stopped
    stopping_for: EndReason | None = None
    end_reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""
    #: attempts after failures of the program. With `max_retries` 0 the job is never run twice by itself.
    retries: int = 0
    max_retries: int = 3
    #: failures of the program that lead to another attempt: words and exit codes of `core.jobs.retries`
    retry_on: tuple[str, ...] = ()
    #: whether it may hold GPUs without using them for long: then zero use is no sign of a fault
    idles: bool = False
    #: whether it is restarted elsewhere if its program reports no more steps; that uses up a retry
    restart_if_hung: bool = False
    #: since when the present attempt does no step, or does fewer than usual; None if it does
    hung_since: float | None = None
    slow_since: float | None = None
    #: platform failures in a row without a checkpoint in between; they are no retries
    faults: int = 0
    #: no start before this time: a back-off after a failure, or after the cluster returned the job
    not_before: float = 0.0
    #: how often in a row the cluster returned the job before it ran
    given_back: int = 0
    avoid_nodes: tuple[str, ...] = ()
    avoid_gpus: tuple[str, ...] = ()
    #: a check runs on exactly these GPUs of one node, whatever their health; empty for every other job
    only_gpus: tuple[str, ...] = ()
    #: jobs that must complete before this one may start; completed ones are removed
    after: tuple[str, ...] = ()
    #: None for a job with a fixed number of GPUs
    elastic: Elastic | None = None
    #: an elastic job may be restarted for a resize although it never wrote a checkpoint
    restart_unsaved: bool = False
    #: while the job is resized or moved: the allocation of the next attempt. It is part of `allocation` already.
    next_allocation: Allocation | None = None
    resized_at: float | None = None
    #: run time of earlier attempts that were resized: it counts for the time limit
    ran_seconds: float = 0.0
    #: measured utilization of an elastic job's GPUs over the recent window; None until the attempt has run that long
    utilization: float | None = None
    ceiling: Ceiling | None = None
    #: when the program wrote its last checkpoint
    checkpointed_at: float | None = None
    #: run time of earlier attempts that is not lost: up to their last checkpoints
    saved_seconds: float = 0.0
    #: run time of all earlier attempts since the owner started the job, saved or lost
    attained_seconds: float = 0.0
    #: the most work that an earlier attempt had done, saved or lost, when it ended or was asked to stop: the job takes
    #: longer than that
    reached_seconds: float = 0.0
    #: as of the last time it was queued; None without similar runs
    predicted: Prediction | None = None
    #: whether the job may be preempted; if not, it never uses GPUs that other queues are owed
    preemptible: bool = True
    #: the job that this one was preempted or moved for, until its next start: the freed resources are for that job
    preempted_for: str | None = None
    #: how often the job was preempted since its owner started it
    preemptions: int = 0
    #: volumes that are mounted while the job runs
    mounts: tuple[VolumeMount, ...] = ()
    #: the most that the job may use of the local disks of all its nodes together
    local_bytes: int = 0
    #: grows with every stored change; a writer with an older version is refused
    version: int = 0

    @property
    def serial(self) -> int:
        """The number in the id: later jobs have larger ones."""
        return _serial_of(self.id)

    @property
    def attempt_id(self) -> str:
        return attempt_id(self.id, self.attempt)

    @property
    def time_left_seconds(self) -> float | None:
        """The longest run time of the present attempt."""
        return None if self.time_limit_seconds is None else max(0.0, self.time_limit_seconds - self.ran_seconds)

    @property
    def expected_end(self) -> float:
        """The latest time at which the job releases its GPUs; infinite without a time limit."""
        if self.time_left_seconds is None or self.allocated_at is None:
            return math.inf
        return (self.started_at or self.allocated_at) + self.time_left_seconds + self.grace_seconds

    @property
    def likely_end(self) -> float:
        """When the job releases its GPUs: at the latest, or without a time limit by the p90 of the prediction; infinite
        without both."""
        if self.time_limit_seconds is not None or self.predicted is None or self.allocated_at is None:
            return self.expected_end
        return (self.started_at or self.allocated_at) + self.predicted.p90_seconds + self.grace_seconds

    def likely_end_after(self, now: float) -> float:
        """The likely end of a job that still runs: beyond its prediction twice the predicted time is assumed, and so
        on."""
        end = self.likely_end
        if end > now or self.time_limit_seconds is not None or self.predicted is None or self.allocated_at is None:
            return end
        since = self.started_at or self.allocated_at
        seconds = max(1.0, self.predicted.p90_seconds)
        while since + seconds + self.grace_seconds <= now:
            seconds *= 2
        return since + seconds + self.grace_seconds

    @property
    def is_resizing(self) -> bool:
        """Whether the job continues with other GPUs as soon as it has saved: resized or moved."""
        return self.state is JobState.STOPPING and self.stopping_for in (EndReason.RESIZED, EndReason.MOVED)

    @property
    def is_moving(self) -> bool:
        """Whether the job continues on another node, so that another job can start on its present one."""
        return self.state is JobState.STOPPING and self.stopping_for is EndReason.MOVED


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    name: str
    pool: str = DEFAULT_POOL
    policy: str = "fair-share"
    blocking: Blocking = Blocking.BACKFILL
    placement: str = "pack"
    weight: float = 1.0
    #: GPUs that the queue gets whenever it needs them; what its jobs hold beyond that is borrowed
    guaranteed_gpus: int = 0
    #: whether waiting jobs at the front preempt running jobs that stand behind them
    preempts: bool = False
    #: the most GPUs that its jobs may hold together
    max_gpus: int | None = None
    #: the most jobs that may wait in it
    max_length: int | None = None
    max_seconds: float | None = None
    #: empty means every kind
    kinds: tuple[JobKind, ...] = ()
    #: groups that may use the queue besides the group of its pool
    groups: tuple[str, ...] = ()
    min_job_gpus: int | None = None
    max_job_gpus: int | None = None
    #: what the queue is for
    description: str = ""


def is_slice(model: str) -> bool:
    """Whether GPUs of this model are slices (MIG) of larger ones: separate devices that are never shared."""
    return _SLICE_MARK in model


@lru_cache(maxsize=65_536)
def _serial_of(job_id: str) -> int:
    return int(job_id.rpartition("-")[2])


def attempt_id(job_id: str, number: int) -> str:
    return f"{job_id}.{number}"


def job_of_attempt(attempt: str) -> tuple[str, int]:
    """The job id and the attempt number in an attempt id."""
    job_id, _, number = attempt.rpartition(".")
    return job_id, int(number)
