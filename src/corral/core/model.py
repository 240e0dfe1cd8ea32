"""The things corral decides about, as immutable values.

A value here carries only what can change a decision. What a job runs (its command, its environment) and
how things are stored or shown belongs to the layers around the core. Times are seconds since the epoch,
always given by the caller; sizes are integers, so that adding and subtracting never drifts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from corral.core.storage.volumes import VolumeMount

#: A whole GPU, or a whole CPU, in thousandths.
WHOLE = 1000

DEFAULT_POOL = "default"
DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 5

#: A label that every node has without being given it: the name of its cluster.
CLUSTER_LABEL = "corral.cluster"

#: In the name of a model: a slice of a GPU, by its profile, as in H200-MIG-1g.18gb.
_SLICE_MARK = "-MIG-"


class JobKind(StrEnum):
    WORKBENCH = "workbench"
    TRAINING = "training"
    DISTRIBUTED = "distributed"
    PRESET = "preset"

    @property
    def is_preemptible(self) -> bool:
        """Whether such jobs may be interrupted for others, unless their owners say otherwise: a person sits at a
        workbench, and nothing there is saved by itself."""
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
        """Queued or holding resources: what counts against a quota and protects from deletion."""
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
    #: it goes on with other GPUs, as the next attempt
    RESIZED = "resized"
    #: it goes on on another node, as the next attempt, and another job has room
    MOVED = "moved"
    #: a job that it was to come after has not completed
    DEPENDENCY_FAILED = "dependency_failed"
    #: it had more on the disk than a job may have
    DISK_QUOTA = "disk_quota"


class NodeState(StrEnum):
    READY = "ready"
    CORDONED = "cordoned"
    DRAINING = "draining"
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
    #: GPUs of a node with the same name here are linked to each other; empty while nothing is known
    link_group: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What of a node others hold who are not corral's: corral leaves it to them."""

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
    #: measured load between 0 and 1, or None while nothing was measured
    load: float | None = None
    #: what an operator has said about it: ready, cordoned or draining; it outlasts a time of being down
    withheld: NodeState = NodeState.READY
    taken: Taken = Taken()
    #: why its engine gives it no work, in the words of whoever said so there
    reason: str = ""

    @property
    def all_labels(self) -> tuple[tuple[str, str], ...]:
        """Its own, and that of its cluster."""
        return (*self.labels, (CLUSTER_LABEL, self.cluster))


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What every instance of a job asks for. More than one node makes it a gang."""

    nodes: int = 1
    #: whole GPUs of one instance
    gpus: int = 0
    #: a share of one GPU in thousandths; 0 when whole GPUs or none are asked for
    gpu_milli: int = 0
    #: 0 means: not reserved and not limited
    cpu_milli: int = 0
    memory_bytes: int = 0
    #: GPU models that will do, sorted; empty means any
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
    """One node's part of an allocation."""

    node: str
    gpus: tuple[str, ...] = ()
    #: of each GPU: WHOLE, or the share of the only one
    gpu_milli: int = WHOLE
    cpu_milli: int = 0
    memory_bytes: int = 0

    @property
    def total_gpu_milli(self) -> int:
        return len(self.gpus) * self.gpu_milli


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """What an attempt holds, node by node; the place of a grant is the rank of its instance."""

    grants: tuple[Grant, ...]
    #: the GPU model, or "" without GPUs; the score is kept per model
    model: str = ""

    @property
    def total_gpu_milli(self) -> int:
        return sum(grant.total_gpu_milli for grant in self.grants)

    @property
    def gpus(self) -> tuple[str, ...]:
        return tuple(gpu for grant in self.grants for gpu in grant.gpus)


@dataclass(frozen=True, kw_only=True, slots=True)
class Elastic:
    """How many GPUs an elastic job may have. While it waits its request says the least, while it runs what it holds."""

    min_gpus: int
    max_gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceiling:
    """An elastic job did not use so many GPUs: it shall not have as many again before a certain time."""

    gpus: int
    until: float
    #: how often that was found; each time it holds for longer
    times: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """How long a job is expected to run from its next start on, by runs that were like it."""

    #: half of them took no longer, and nine tenths
    p50_seconds: float
    p90_seconds: float
    #: how many runs that is known from
    samples: int
    #: what they have in common with it, in words
    like: str = ""
    #: how differently long such runs are: equally many of them end between each of these and the next, ascending. Empty
    #: if only the two above are known.
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
    #: smaller goes first
    priority: int = DEFAULT_PRIORITY
    created_at: float = 0.0
    queued_at: float | None = None
    #: when it was first queued: an interruption makes it no younger
    aged_from: float | None = None
    #: when an operator put it to the front; the later pin goes first
    pinned_at: float | None = None
    #: its place among its user's own jobs; 0 until the user moves one
    user_order: int = 0
    #: longest run time; None means it runs until it is stopped
    time_limit_seconds: float | None = None
    grace_seconds: float = 30.0
    #: the number of the latest attempt; 0 before the first
    attempt: int = 0
    allocation: Allocation | None = None
    #: when the present attempt got its allocation, and when its processes were up
    allocated_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    #: why a stopping job is being stopped
    stopping_for: EndReason | None = None
    end_reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""
    #: new attempts after failures of its own. With none allowed it is never run twice by itself.
    retries: int = 0
    max_retries: int = 3
    #: faults of the platform in a row, without anything saved in between; they are no retries
    faults: int = 0
    #: not before this time, while it backs off after a failure, or after its cluster gave it back
    not_before: float = 0.0
    #: how often in a row its cluster gave it back before it ran
    given_back: int = 0
    avoid_nodes: tuple[str, ...] = ()
    avoid_gpus: tuple[str, ...] = ()
    #: jobs that must have completed before it may start; one that has is taken out
    after: tuple[str, ...] = ()
    #: None means: as many GPUs as it asks for, always
    elastic: Elastic | None = None
    #: while it is resized or moved: what the next attempt will hold. It is part of the allocation already.
    next_allocation: Allocation | None = None
    resized_at: float | None = None
    #: run time of attempts before this one that were resized: it counts for the time limit, which is not given anew
    ran_seconds: float = 0.0
    #: measured use of an elastic job's GPUs over the recent window; None until this attempt has run for a whole one
    utilization: float | None = None
    ceiling: Ceiling | None = None
    #: when its program last saved its work
    checkpointed_at: float | None = None
    #: run time of attempts before this one that is not lost: up to their last checkpoints
    saved_seconds: float = 0.0
    #: run time of all attempts before this one since its owner started it, whether it was saved or lost
    attained_seconds: float = 0.0
    #: how far its work had come at most when an attempt before this one ended or was told to, saved or lost: it is
    #: known to take longer than that
    reached_seconds: float = 0.0
    #: as of when it was last queued; None while nothing is known of jobs like it
    predicted: Prediction | None = None
    #: whether it may be interrupted for others; one that may not never takes what others are owed
    preemptible: bool = True
    #: the job that it was preempted or moved for, until it starts again: what it gave up is for that one
    preempted_for: str | None = None
    #: how often it was preempted since it was started by its owner
    preemptions: int = 0
    #: volumes that it has from its start to its end
    mounts: tuple[VolumeMount, ...] = ()
    #: what it may fill of its nodes' own disks, all of them together
    local_bytes: int = 0
    #: grows with every saved change; a writer that saw an older one loses
    version: int = 0

    @property
    def serial(self) -> int:
        """The number in its id: later jobs have larger ones."""
        return int(self.id.rpartition("-")[2])

    @property
    def attempt_id(self) -> str:
        return attempt_id(self.id, self.attempt)

    @property
    def time_left_seconds(self) -> float | None:
        """The longest run time of the present attempt."""
        return None if self.time_limit_seconds is None else max(0.0, self.time_limit_seconds - self.ran_seconds)

    @property
    def expected_end(self) -> float:
        """When its GPUs are free again at the latest; infinite without a time limit."""
        if self.time_left_seconds is None or self.allocated_at is None:
            return math.inf
        return (self.started_at or self.allocated_at) + self.time_left_seconds + self.grace_seconds

    @property
    def likely_end(self) -> float:
        """When its GPUs are free again: at the latest, or without a time limit as with nine tenths of the jobs like it;
        infinite while nothing is known."""
        if self.time_limit_seconds is not None or self.predicted is None or self.allocated_at is None:
            return self.expected_end
        return (self.started_at or self.allocated_at) + self.predicted.p90_seconds + self.grace_seconds

    def likely_end_after(self, now: float) -> float:
        """The likely end of a job that runs still: one that has outlived it may take twice as long, and so on."""
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
        """Whether it goes on with other GPUs as soon as it has saved: more, fewer, or as many elsewhere."""
        return self.state is JobState.STOPPING and self.stopping_for in (EndReason.RESIZED, EndReason.MOVED)

    @property
    def is_moving(self) -> bool:
        """Whether it goes on elsewhere, so that another job can start where it ran."""
        return self.state is JobState.STOPPING and self.stopping_for is EndReason.MOVED


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    name: str
    pool: str = DEFAULT_POOL
    policy: str = "fair-share"
    blocking: Blocking = Blocking.BACKFILL
    placement: str = "pack"
    weight: float = 1.0
    #: GPUs that come back to it when it needs them; what its jobs hold beyond that is borrowed
    guaranteed_gpus: int = 0
    #: whether jobs at its front take GPUs from those far behind them that run already
    preempts: bool = False
    #: GPUs that its jobs may hold together
    max_gpus: int | None = None
    #: jobs that may wait in it
    max_length: int | None = None
    max_seconds: float | None = None
    #: empty means every kind
    kinds: tuple[JobKind, ...] = ()
    #: groups that may use it beside the one that has its pool
    groups: tuple[str, ...] = ()
    min_job_gpus: int | None = None
    max_job_gpus: int | None = None


def is_slice(model: str) -> bool:
    """Whether GPUs of this model are slices (MIG) of larger ones: devices of their own that are never shared."""
    return _SLICE_MARK in model


def attempt_id(job_id: str, number: int) -> str:
    return f"{job_id}.{number}"


def job_of_attempt(attempt: str) -> tuple[str, int]:
    """The job and the number behind an attempt id."""
    job_id, _, number = attempt.rpartition(".")
    return job_id, int(number)
