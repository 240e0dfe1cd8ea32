"""The installation's settings as use cases need them, independent of the format of the configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from corral.core.alerts.defaults import Thresholds
from corral.core.model import DEFAULT_PRIORITY, JobKind
from corral.core.people.quota import Quota
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT
from corral.core.snapshot.installation import (
    DEFAULT_BACKFILL,
    DEFAULT_PREEMPTION,
    AllocationRules,
    BackfillRules,
    Limits,
    PreemptionRules,
    ScalingRules,
)
from corral.core.storage.volumes import VolumeType


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPolicy:
    """The workflow of allocate, start-program and release."""

    #: put in front of a task's name to make its job's name
    prefix: str = "task_"
    #: GPUs that one user's automatic, and explicitly sized, allocations may hold; None means no limit
    max_auto_gpus: int | None = 2
    max_manual_gpus: int | None = 6
    #: the program that is started when none is given; `{gpu_list}`, `{gpu_count}` and others are filled in
    command: tuple[str, ...] = ("python", "train.py")
    env: Mapping[str, str] = field(default_factory=dict)
    #: how a program is warned: "restart" (SIGTERM), "file", or the name of a signal
    notify: str = "restart"
    #: programs that never wrote a checkpoint may be restarted for a resize
    restart_unsaved: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointPolicy:
    """The variables for saving that jobs get. If switched off, jobs get the checkpoint directory only."""

    enabled: bool = True
    #: how often, unless a job says otherwise itself
    interval_seconds: float = 600.0
    #: how many of them stay
    keep: int = 3
    #: a directory for PYTHONPATH in which programs find the helper; None means that they bring their own
    library: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingPolicy:
    """Elastic jobs: how large they may be asked for, and when they are resized."""

    #: the least and the most GPUs of an elastic job, and what one gets that does not say it
    min_gpus: int = 1
    max_gpus: int = 4
    rules: ScalingRules = field(default_factory=ScalingRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class HybridShare:
    """The owners of the share of each pool that the strategy `hybrid` reserves by itself. Without owners the share is
    only lent, until a permanent reservation takes its GPUs."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Policies:
    limits: Limits = field(default_factory=Limits)
    score_time_constant: float = DEFAULT_TIME_CONSTANT
    default_priority: int = DEFAULT_PRIORITY
    #: jobs that may wait in all queues together
    max_queue_length: int | None = 1000
    #: the smallest share of a GPU that a job may ask for, in thousandths
    smallest_share_milli: int = 10
    max_retries: int = 3
    #: failures of a program that lead to another attempt, unless the job says it
    retry_on: tuple[str, ...] = ()
    grace_seconds: float = 30.0
    #: what the queue `default` follows when they change
    ordering: str = "fair-share"
    blocking: str = "backfill"
    placement: str = "fragmentation"
    #: how GPUs are given out, and how much of a pool may be reserved standing
    allocation: AllocationRules = field(default_factory=AllocationRules)
    #: None: nothing is reserved without an operator
    hybrid_share: HybridShare | None = None
    #: for the orderings that look at run times and age
    ordering_rules: OrderingRules = field(default_factory=OrderingRules)
    preemption: PreemptionRules = DEFAULT_PREEMPTION
    backfill: BackfillRules = DEFAULT_BACKFILL
    tasks: TaskPolicy = field(default_factory=TaskPolicy)
    scaling: ScalingPolicy = field(default_factory=ScalingPolicy)
    checkpoints: CheckpointPolicy = field(default_factory=CheckpointPolicy)
    #: what new users may hold, until an operator says otherwise; a kind or type that is left out has no limit
    default_quota: Mapping[JobKind, Quota] = field(default_factory=dict)
    default_volume_bytes: Mapping[VolumeType, int] = field(default_factory=dict)
    #: what the alert rules that corral comes with follow when they change
    alert_thresholds: Thresholds = field(default_factory=Thresholds)
