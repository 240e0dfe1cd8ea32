"""The input of signals: the fleet, its readings and its queues at one moment, as plain values.

The caller has already dropped readings that are stale: a stale or missing reading is None here, and a signal has no
value for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import DEFAULT_POOL, GpuHealth, NodeState


class Scope(StrEnum):
    """The kind of an alert's subject."""

    GPU = "gpu"
    NODE = "node"
    JOB = "job"
    QUEUE = "queue"
    POOL = "pool"
    VOLUME = "volume"
    STORE = "store"
    SERVER = "server"


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFact:
    id: str
    node: str
    model: str = ""
    pool: str = DEFAULT_POOL
    health: GpuHealth = GpuHealth.HEALTHY
    #: the newest evidence against the GPU, as text
    evidence: str = ""
    temperature_celsius: float | None = None
    #: parts are 0 … 1
    power_part: float | None = None
    power_watts: float | None = None
    utilization: float | None = None
    memory_part: float | None = None
    #: recent errors, as text; None while not known
    errors: tuple[str, ...] | None = None
    #: how long the GPU has been idle under a job; 0 without a job, None while not known
    idle_seconds: float | None = None
    #: the jobs that hold it, and their users
    jobs: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFact:
    id: str
    state: NodeState = NodeState.READY
    gpus: int = 0
    #: the jobs that hold resources on the node
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueFact:
    id: str
    waiting: int = 0
    longest_wait_seconds: float = 0.0
    #: the job that waits longest
    first_job: str = ""
    #: the error of planning the queue, and the digest of the snapshot; empty if planning succeeds
    plan_failure: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureFact:
    """A job that failed lately."""

    id: str
    at: float
    user: str = ""
    name: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolFact:
    id: str
    gpus: int = 0
    #: healthy, on a ready node, and not held
    free: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeFact:
    """A volume that has a size."""

    id: str
    name: str = ""
    owner: str = ""
    size_bytes: int = 0
    #: None before the first measurement
    used_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFact:
    """A row of the store that is damaged."""

    #: the table and the row's key
    id: str
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerFact:
    """The leader of several servers."""

    id: str
    #: other servers that are alive and could lead
    standbys: int = 0


Fact = GpuFact | NodeFact | QueueFact | FailureFact | PoolFact | VolumeFact | RowFact | ServerFact


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    now: float
    gpus: Sequence[GpuFact] = ()
    nodes: Sequence[NodeFact] = ()
    queues: Sequence[QueueFact] = ()
    pools: Sequence[PoolFact] = ()
    failures: Sequence[FailureFact] = ()
    volumes: Sequence[VolumeFact] = ()
    rows: Sequence[RowFact] = ()
    servers: Sequence[ServerFact] = ()

    def of(self, scope: Scope) -> Sequence[Fact]:
        """All facts of that kind, whether they have a value at this moment or not."""
        match scope:
            case Scope.GPU:
                return self.gpus
            case Scope.NODE:
                return self.nodes
            case Scope.QUEUE:
                return self.queues
            case Scope.POOL:
                return self.pools
            case Scope.JOB:
                return self.failures
            case Scope.VOLUME:
                return self.volumes
            case Scope.SERVER:
                return self.servers
            case Scope.STORE:
                return self.rows
