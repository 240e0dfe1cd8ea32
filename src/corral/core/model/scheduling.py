"""The input and output of scheduling decisions: queues, requests, allocations, predicted run times."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.model.fleet import DEFAULT_POOL
from corral.core.model.job_states import JobKind

#: A whole GPU, or a whole CPU, in thousandths.
WHOLE = 1000

DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 5


class Blocking(StrEnum):
    STRICT = "strict"
    BACKFILL = "backfill"


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
